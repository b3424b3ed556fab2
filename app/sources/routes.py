"""The HTTP side of sources."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlmodel import Session

from app.callers import Caller, SourceKeeper
from app.db.idempotency import Keyed
from app.db.tables import SourceRow
from app.db.writer import StorageUnavailable
from app.kit.catalogue import headers, responses
from app.kit.clock import rfc3339
from app.kit.cursors import time_cursor
from app.kit.idempotency import IdempotencyKey
from app.kit.pages import CursorText, Limit, Page, link_next, page_of
from app.kit.problems import (
    CursorInvalid,
    IdempotencyKeyReused,
    NotFound,
    PayloadTooLarge,
    RequestInFlight,
    UnsupportedMediaType,
)
from app.services import Services, services
from app.sources import queries
from app.sources.problems import SourceInUse, SourceUploadOff, UnfitSource
from app.sources.schemas import MEDIA_TYPE, SourceView
from app.sources.views import source_view
from workers.contract import Text

router = APIRouter(prefix="/sources", tags=["sources"])
House = Annotated[Services, Depends(services)]
SourceId = Annotated[str, Path(description="The source's id, `src_…`.")]

NAME = "The source's name, else the file's."
ARCHIVE = {"type": "string", "contentMediaType": "application/octet-stream", "description": "The zip or wheel."}
LABEL = {"type": "string", "default": "", "description": NAME}
UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "properties": {"file": ARCHIVE, "name": LABEL}, "required": ["file"]}
            },
            MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post(
    "",
    status_code=201,
    response_model=SourceView,
    openapi_extra=UPLOAD_BODY,
    responses={
        201: {"headers": headers("Location", "Idempotency-Replayed")},
        200: {
            "model": SourceView,
            "description": "The same package is there already.",
            "headers": headers("Location", "Idempotency-Replayed"),
        },
        **responses(SourceUploadOff, UnfitSource, IdempotencyKeyReused, RequestInFlight, StorageUnavailable),
        **responses(PayloadTooLarge, UnsupportedMediaType),
    },
)
async def upload_source(
    request: Request,
    house: House,
    caller: SourceKeeper,
    key: IdempotencyKey,
    name: Annotated[Text | None, Query(max_length=255, description=NAME)] = None,
) -> Response:
    """Upload a package of your own code, as a zip or a wheel of pure Python: a training job that names it can import it.

    The top level of a zip holds what is imported. Of a wheel only its modules are taken; nothing is installed, so what it depends
    on must be on the workers. Off unless the server's operator allows it.
    """
    keyed = Keyed(caller.name, "POST /sources", key) if key else None
    return await house.sources.upload(request, caller.name, name, keyed)


@router.get(
    "", response_model=Page[SourceView], responses={200: {"headers": headers("Link")}, **responses(CursorInvalid)}
)
async def list_sources(
    request: Request, response: Response, house: House, caller: Caller, limit: Limit, cursor: CursorText
) -> Page[SourceView]:
    """Your sources, newest first."""
    after = time_cursor(cursor, {})

    def query(db: Session) -> Sequence[SourceRow]:
        return queries.newest_sources(db, caller.name, limit, after)

    page = page_of(await house.reader.run(query), limit, lambda row: (rfc3339(row.created_at), row.id), {})
    link_next(request, response, page.next)
    return Page(items=[source_view(row) for row in page.rows], next=page.next)


@router.get("/{source_id}", responses=responses(NotFound))
async def get_source(source_id: SourceId, house: House, caller: Caller) -> SourceView:
    """A source: what can be imported from it."""
    return source_view(await house.reader.run(lambda db: queries.source_of(db, source_id, caller.name)))


@router.delete("/{source_id}", status_code=204, responses=responses(NotFound, SourceInUse, StorageUnavailable))
async def delete_source(source_id: SourceId, house: House, caller: SourceKeeper) -> None:
    """Delete a source, unless a job that has not ended needs it."""
    await house.sources.delete(source_id, caller.name)
