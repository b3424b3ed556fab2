"""The HTTP side of keys."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Request, Response

from app.callers import CALLER, OPERATOR, Admin
from app.db.writer import StorageUnavailable
from app.jobs.answers import keyed_by
from app.keys.problems import KeysNotInUse
from app.keys.schemas import EXAMPLES, KeyRequest, KeyView, NewKey
from app.keys.views import key_view
from app.kit.catalogue import headers, responses
from app.kit.clock import rfc3339
from app.kit.cursors import time_cursor
from app.kit.idempotency import IdempotencyKey
from app.kit.json_bodies import StrictJSONRoute
from app.kit.middleware import json_only
from app.kit.pages import CursorText, Limit, Page, link_next, page_of
from app.kit.problems import CursorInvalid, IdempotencyKeyReused, InvalidInput, NotFound, RequestInFlight
from app.services import Services, services

House = Annotated[Services, Depends(services)]
KeyId = Annotated[str, Path(description="The key's id, `key_…`.")]


async def in_use(request: Request, house: House) -> None:
    """Raise KeysNotInUse where anybody may ask for anything. The operator, who owns HOME, may prepare keys at any time."""
    if house.settings.auth == "off" and request.scope.get(CALLER) is not OPERATOR:
        raise KeysNotInUse


router = APIRouter(
    prefix="/keys",
    tags=["keys"],
    dependencies=[Depends(in_use), Depends(json_only)],
    route_class=StrictJSONRoute,
    responses=responses(KeysNotInUse),
)


@router.post(
    "",
    status_code=201,
    response_model=NewKey,
    responses={
        201: {"headers": headers("Location", "Idempotency-Replayed")},
        **responses(KeysNotInUse, RequestInFlight, IdempotencyKeyReused, InvalidInput, StorageUnavailable),
    },
)
async def create_key(
    body: Annotated[KeyRequest, Body(openapi_examples=EXAMPLES)],
    request: Request,
    house: House,
    caller: Admin,
    key: IdempotencyKey,
) -> Response:
    """Make a key, for yourself or for another owner. Copy `key` out of the answer: it is shown this once, and kept nowhere.

    A repeat under the same `Idempotency-Key` makes no second key, and answers without the secret. Revoke a key whose answer was lost.
    """
    return await house.keys.create(body, caller, await keyed_by(request, caller, key))


@router.get("", response_model=Page[KeyView], responses={200: {"headers": headers("Link")}, **responses(CursorInvalid)})
async def list_keys(
    request: Request, response: Response, house: House, caller: Admin, limit: Limit, cursor: CursorText
) -> Page[KeyView]:
    """The keys of all owners, newest first, without their secrets."""
    rows = await house.keys.newest(limit, time_cursor(cursor, {}))
    page = page_of(rows, limit, lambda row: (rfc3339(row.created_at), row.id), {})
    link_next(request, response, page.next)
    return Page(items=[key_view(row) for row in page.rows], next=page.next)


@router.get("/{key_id}", responses=responses(NotFound))
async def get_key(key_id: KeyId, house: House, caller: Admin) -> KeyView:
    """A key, without its secret."""
    return key_view(await house.keys.get(key_id))


@router.delete("/{key_id}", status_code=204, responses=responses(NotFound, StorageUnavailable))
async def revoke_key(key_id: KeyId, house: House, caller: Admin) -> None:
    """Revoke a key, at once: its next request is answered 401, and streams that it opened end. What its owner has stays."""
    await house.keys.revoke(key_id)
