"""From dataset rows to what people see."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Response

from app.datasets.columns import mapped
from app.datasets.schemas import DatasetView
from app.db.tables import Dataset
from app.files import Files
from app.kit.clock import rfc3339
from app.kit.strict_json import StrictJSONResponse, dumps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PIECE = 1 << 14
"""Values at a time: a request for a long series must not hold up the others."""


def dataset_view(dataset: Dataset) -> DatasetView:
    return DatasetView.model_validate(dataset.model_dump())


def created(dataset: Dataset, new: bool) -> Response:
    body = dataset_view(dataset).model_dump(mode="json")
    return StrictJSONResponse(body, 201 if new else 200, {"Location": f"/datasets/{dataset.id}"})


def series_json(
    dataset: Dataset, index: int, start: int, stop: int, points: int | None, files: Files
) -> Iterator[bytes]:
    """The `SeriesView` of [start, stop), or of the extremes of `points` / 2 stretches of it, as pieces of JSON.

    However long the series is, only a piece of it is in memory at a time.
    """
    with mapped(files.column(dataset.id, index), "d") as column:
        downsampled = points is not None and stop - start > points
        rows = _extremes(column, start, stop, points or 0) if downsampled else range(start, stop)
        head = {"column": dataset.columns[index]["name"], "start": start, "stop": stop, "downsampled": downsampled}
        yield dumps(head)[:-1]
        yield from _listed("rows", rows, list)
        yield from _listed("values", rows, lambda part: [column[row] for row in part])  # not finite becomes null
    if dataset.time_column is None:
        yield b',"at":null}'
        return
    with mapped(files.times(dataset.id), "q") as times:
        yield from _listed("at", rows, lambda part: [rfc3339(EPOCH + timedelta(microseconds=times[r])) for r in part])
    yield b"}"


def _listed(name: str, rows: Sequence[int], values: Callable[[Sequence[int]], list[Any]]) -> Iterator[bytes]:
    yield f',"{name}":['.encode()
    for first in range(0, len(rows), PIECE):
        yield (b"," if first else b"") + dumps(values(rows[first : first + PIECE]))[1:-1]
    yield b"]"


def _extremes(column: memoryview, start: int, stop: int, points: int) -> list[int]:
    """The rows of the smallest and the largest value of each stretch, in order: what a drawing of that width can show."""
    stretches = max(1, points // 2)
    rows: list[int] = []
    for i in range(stretches):
        first, last = start + (stop - start) * i // stretches, start + (stop - start) * (i + 1) // stretches
        rows += _extremes_of(column, first, last) or [first][: last - first]
    return rows


def _extremes_of(column: memoryview, first: int, last: int) -> list[int]:
    """The rows of the smallest and the largest finite value of one stretch, found piece by piece; empty without any."""
    low = high = -1
    for at in range(first, last, PIECE):
        piece: list[Any] = column[at : min(at + PIECE, last)].tolist()  # a cast view's list has no better type
        if finite := [value for value in piece if value - value == 0]:
            smallest, largest = min(finite), max(finite)
            if low < 0 or smallest < column[low]:
                low = at + piece.index(smallest)
            if high < 0 or largest > column[high]:
                high = at + piece.index(largest)
    return sorted({low, high} - {-1})
