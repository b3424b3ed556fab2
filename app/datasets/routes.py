"""The HTTP side of datasets."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from sqlmodel import Session

from app.callers import Caller, Submitter
from app.datasets import queries
from app.datasets.problems import DatasetInUse, UnreadableFile
from app.datasets.schemas import MEDIA_TYPES, OPTIONS, DatasetView, SeriesView
from app.datasets.selection import column_index, stretch_of
from app.datasets.views import dataset_view, series_json
from app.db.idempotency import Keyed
from app.db.tables import Dataset
from app.db.writer import StorageUnavailable
from app.kit.catalogue import headers, responses
from app.kit.clock import rfc3339
from app.kit.cursors import time_cursor
from app.kit.files import FileAnswer, Range
from app.kit.idempotency import IdempotencyKey
from app.kit.pages import CursorText, Limit, Page, link_next, page_of
from app.kit.problems import (
    CursorInvalid,
    IdempotencyKeyReused,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    RangeNotSatisfiable,
    RequestInFlight,
    UnsupportedMediaType,
)
from app.services import Services, services
from workers.contract import SeriesReference, Text

router = APIRouter(prefix="/datasets", tags=["datasets"])
House = Annotated[Services, Depends(services)]
DatasetId = Annotated[str, Path(description="The dataset's id, `ds_…`.")]

NAME = "The dataset's name, else the file's."
FILE_SCHEMA = {"type": "string", "contentMediaType": "application/octet-stream", "description": "The file."}
BLANK = {"type": "string", "default": ""}
"""The page at `/docs` fills a form with each part's default, and would invent one; an empty part says nothing."""
SAID: dict[str, dict[str, Any]] = {name: {**BLANK, "description": said} for name, said in OPTIONS.items()}
SAID["header"]["enum"] = ["", "true", "false"]
CONTENT = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": FILE_SCHEMA, "name": {**BLANK, "description": NAME}, **SAID},
                    "required": ["file"],
                }
            },
            **{media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in MEDIA_TYPES[1:]},
            "text/csv": {
                "schema": {"type": "string"},
                "examples": {
                    "temperatures": {
                        "summary": "A CSV with dates and a gap",
                        "value": "date,celsius\n2024-01-01,3.1\n2024-01-02,2.7\n2024-01-03,\n2024-01-04,4.0\n",
                    }
                },
            },
        },
    }
}


def said_in_query(
    name: Annotated[Text | None, Query(max_length=255, description=NAME)] = None,
    delimiter: Annotated[Text | None, Query(max_length=8, description=OPTIONS["delimiter"])] = None,
    decimal: Annotated[Text | None, Query(max_length=8, description=OPTIONS["decimal"])] = None,
    thousands: Annotated[Text | None, Query(max_length=8, description=OPTIONS["thousands"])] = None,
    header: Annotated[bool | None, Query(description=OPTIONS["header"])] = None,
    skip_rows: Annotated[int | None, Query(ge=0, le=10_000, description=OPTIONS["skip_rows"])] = None,
    encoding: Annotated[Text | None, Query(max_length=64, description=OPTIONS["encoding"])] = None,
    missing: Annotated[Text | None, Query(max_length=255, description=OPTIONS["missing"])] = None,
    text: Annotated[Text | None, Query(max_length=4096, description=OPTIONS["text"])] = None,
    time_column: Annotated[Text | None, Query(max_length=255, description=OPTIONS["time_column"])] = None,
    time_format: Annotated[Text | None, Query(max_length=64, description=OPTIONS["time_format"])] = None,
) -> dict[str, str]:
    said = locals()
    return {key: str(value).lower() if key == "header" else value for key, value in said.items() if value is not None}


@router.post(
    "",
    status_code=201,
    response_model=DatasetView,
    openapi_extra=UPLOAD_BODY,
    responses={
        201: {"headers": headers("Location", "Idempotency-Replayed")},
        200: {
            "model": DatasetView,
            "description": "The same dataset is there already.",
            "headers": headers("Location", "Idempotency-Replayed"),
        },
        **responses(UnreadableFile, IdempotencyKeyReused, RequestInFlight, StorageUnavailable),
        **responses(PayloadTooLarge, UnsupportedMediaType),
    },
)
async def upload_dataset(
    request: Request,
    house: House,
    caller: Submitter,
    key: IdempotencyKey,
    said: Annotated[dict[str, str], Depends(said_in_query)],
) -> Response:
    """Upload a file: as a form's part `file`, or as the body itself. CSV, TSV, Parquet, NPY, NPZ, JSON, and gzip of them."""
    keyed = Keyed(caller.name, "POST /datasets", key) if key else None
    return await house.datasets.upload(request, caller.name, said, keyed)


@router.get(
    "", response_model=Page[DatasetView], responses={200: {"headers": headers("Link")}, **responses(CursorInvalid)}
)
async def list_datasets(
    request: Request, response: Response, house: House, caller: Caller, limit: Limit, cursor: CursorText
) -> Page[DatasetView]:
    """Your datasets, newest first."""
    after = time_cursor(cursor, {})

    def query(db: Session) -> Sequence[Dataset]:
        return queries.newest_datasets(db, caller.name, limit, after)

    page = page_of(await house.reader.run(query), limit, lambda d: (rfc3339(d.created_at), d.id), {})
    link_next(request, response, page.next)
    return Page(items=[dataset_view(row) for row in page.rows], next=page.next)


@router.get("/{dataset_id}", responses=responses(NotFound))
async def get_dataset(dataset_id: DatasetId, house: House, caller: Caller) -> DatasetView:
    """A dataset: its columns, and how much in them is missing."""
    return dataset_view(await house.reader.run(lambda db: queries.dataset_of(db, dataset_id, caller.name)))


@router.get(
    "/{dataset_id}/content",
    response_class=FileAnswer,
    dependencies=[Range],
    responses={
        200: {"content": CONTENT},
        206: {"content": CONTENT, "description": "The `Range` that was asked for."},
        **responses(NotFound, RangeNotSatisfiable),
    },
)
async def get_dataset_content(dataset_id: DatasetId, house: House, caller: Caller) -> FileAnswer:
    """The bytes as uploaded."""
    dataset = await house.reader.run(lambda db: queries.dataset_of(db, dataset_id, caller.name))
    path = house.files.dataset(dataset.id) / "content"
    safe = {"X-Content-Type-Options": "nosniff"}
    return FileAnswer(path, media_type="application/octet-stream", filename=dataset.name, headers=safe)


@router.get("/{dataset_id}/series", response_model=SeriesView, responses=responses(NotFound, InvalidInput))
async def get_dataset_series(
    dataset_id: DatasetId,
    house: House,
    caller: Caller,
    column: Annotated[Text | None, Query(max_length=255, description="Name or number of the column.")] = None,
    start: Annotated[int, Query(ge=0, le=2**53, description="First row, counted from 0.")] = 0,
    stop: Annotated[int | None, Query(ge=0, le=2**53, description="Row after the last one.")] = None,
    points: Annotated[int | None, Query(ge=2, le=100_000, description="At most so many values, for drawing.")] = None,
) -> StreamingResponse:
    """A column's values, whole or downsampled for drawing."""

    def query(db: Session) -> tuple[Dataset, int, int, int]:
        dataset = queries.dataset_of(db, dataset_id, caller.name)
        wanted = (
            int(column) if column and column.isascii() and column.isdigit() and not _named(dataset, column) else column
        )
        reference = SeriesReference(dataset=dataset_id, column=wanted, start=start, stop=stop)
        return dataset, column_index(dataset, reference, "/query"), *stretch_of(dataset, reference, "/query")

    dataset, index, first, last = await house.reader.run(query)
    pieces = series_json(dataset, index, first, last, points, house.files)
    return StreamingResponse(pieces, media_type="application/json")


def _named(dataset: Dataset, name: str) -> bool:
    return any(column["name"] == name for column in dataset.columns)


@router.delete("/{dataset_id}", status_code=204, responses=responses(NotFound, DatasetInUse, StorageUnavailable))
async def delete_dataset(dataset_id: DatasetId, house: House, caller: Submitter) -> None:
    """Delete a dataset, unless a job that has not ended needs it."""
    await house.datasets.delete(dataset_id, caller.name)
