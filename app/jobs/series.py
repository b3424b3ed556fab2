"""From a series reference to the facts the checks need, and to the source a worker reads."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sqlmodel import Session

from app.datasets import queries as datasets
from app.datasets.columns import gaps
from app.datasets.selection import column_index, stretch_of
from app.db.tables import Dataset
from app.files import Files
from app.jobs.checks import SeriesFacts, finite_runs
from app.kit.problems import InvalidInput, NotFound
from workers.contract import SeriesReference, Source


def facts_of(db: Session, files: Files, owner: str, reference: SeriesReference, pointer: str) -> SeriesFacts:
    """Look a reference up. Raises InvalidInput, with the pointer of what names nothing usable."""
    if reference.values is not None:
        runs = finite_runs(len(reference.values), _inline_gaps(reference.values))
        values = tuple(None if math.isnan(value) else value for value in reference.values)
        return SeriesFacts("the series sent along", len(reference.values), runs, identity=values)
    dataset = _dataset(db, owner, reference, pointer)
    index = column_index(dataset, reference, pointer)
    start, stop = stretch_of(dataset, reference, pointer)
    path = files.gaps(dataset.id, index)
    name = dataset.columns[index]["name"]
    part = "" if (start, stop) == (0, dataset.rows) else f" from row {start} to {stop}"
    return SeriesFacts(
        label=f"column {name!r} of {dataset.name!r}{part}",
        length=stop - start,
        finite=finite_runs(stop - start, gaps(path, start, stop)),
        identity=(dataset.sha256, dataset.options, index, start, stop),
    )


def source_of(db: Session, files: Files, reference: Mapping[str, Any]) -> Source:
    """What a worker reads for a reference that was checked when its job was accepted."""
    known = SeriesReference.model_validate(reference)
    if known.values is not None:
        return Source(name="values", values=known.values)
    dataset = db.get(Dataset, known.dataset)
    if dataset is None:
        raise NotFound(f"The dataset {known.dataset!r} is gone.")
    index = column_index(dataset, known, "")
    return Source(
        name=dataset.columns[index]["name"],
        path=str(files.column(dataset.id, index)),
        time_path=str(files.times(dataset.id)) if dataset.time_column is not None else None,
        start=known.start,
        stop=known.stop if known.stop is not None else dataset.rows,
    )


def _inline_gaps(values: list[float]) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for index, value in enumerate(values):
        if math.isfinite(value):
            if start is not None:
                yield start, index
            start = None
        elif start is None:
            start = index
    if start is not None:
        yield start, len(values)


def _dataset(db: Session, owner: str, reference: SeriesReference, pointer: str) -> Dataset:
    assert reference.dataset is not None  # a reference has either values or a dataset
    try:
        return datasets.dataset_of(db, reference.dataset, owner)
    except NotFound as missing:
        raise InvalidInput(missing.detail, pointer=f"{pointer}/dataset") from None
