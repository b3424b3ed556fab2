"""From references to series: the facts that the checks need, and the sources that a worker reads."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.datasets import queries as datasets
from app.datasets.columns import gaps, mapped
from app.datasets.selection import column_index, stretch_of
from app.db.tables import Dataset
from app.files import Files
from app.jobs.checks.facts import SeriesFacts, finite_runs
from app.kit.problems import InvalidInput, NotFound
from workers.contract import Columns, Message, MultidimensionalProfileParams, SeriesReference, Source
from workers.operations import Operation

References = SeriesReference | list[SeriesReference] | Columns
"""What a parameter that names series may hold."""
LOOKED_AT_ONCE = 4096


@dataclass(frozen=True)
class Named:
    """One series of a request: its reference, and where the request names it."""

    reference: SeriesReference
    pointer: str
    label: str
    """What to call values that were sent along; a column has a name of its own."""
    of_columns: str | None = None
    """Where the `Columns` stand that it is one of."""


def references_in(operation: Operation, params: Message) -> dict[str, References]:
    """The parameters that name series, of those that were given, in the operation's order."""
    named = {name: getattr(params, name) for name in operation.series}
    return {name: value for name, value in named.items() if value is not None}


def datasets_in(operation: Operation, params: Message) -> set[str]:
    """Every dataset that a request reads."""
    found: set[str] = set()
    for value in references_in(operation, params).values():
        found |= {each.dataset for each in (value if isinstance(value, list) else [value]) if each.dataset is not None}
    return found


def facts_in(db: Session, files: Files, owner: str, operation: Operation, params: Message) -> list[SeriesFacts]:
    """What is known of every series of a request, in order. Raises InvalidInput, with the pointer of what names nothing usable."""
    constant = isinstance(params, MultidimensionalProfileParams)  # a dead dimension is worth a warning, and only there
    return [
        facts_of(db, files, owner, named, constant)
        for name, value in references_in(operation, params).items()
        for named in named_in(db, owner, name, value)
    ]


def named_in(db: Session, owner: str | None, name: str, value: References) -> list[Named]:
    """The series that one parameter names."""
    pointer = f"/params/{name}"
    match value:
        case SeriesReference():
            label = "the series sent along" if name in ("series", "against") else f"series {name!r}"
            return [Named(value, pointer, label)]
        case Columns():
            return _named_columns(_dataset(db, owner, value.dataset, pointer), value, pointer)
        case several:
            return [Named(each, f"{pointer}/{i}", f"series {i}") for i, each in enumerate(several)]


def _named_columns(dataset: Dataset, columns: Columns, pointer: str) -> list[Named]:
    numeric = [i for i, column in enumerate(dataset.columns) if column["type"] == "float64"]
    names: list[str | int] = [*(numeric if columns.columns is None else columns.columns)]
    if not names:
        raise InvalidInput(f"{dataset.name!r} has no numeric column.", pointer=f"{pointer}/dataset")
    first: dict[str | int, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            raise InvalidInput(f"Column {name!r} is named twice; name each once.", pointer=f"{pointer}/columns/{i}")
    return [
        Named(
            SeriesReference(dataset=columns.dataset, column=name, start=columns.start, stop=columns.stop),
            pointer if columns.columns is None else f"{pointer}/columns/{i}",
            f"series {i}",
            of_columns=pointer,
        )
        for i, name in enumerate(names)
    ]


def facts_of(db: Session, files: Files, owner: str, named: Named, constant: bool = False) -> SeriesFacts:
    """Look one series up; with `constant`, also whether it ever changes."""
    reference = named.reference
    if reference.values is not None:
        runs = finite_runs(len(reference.values), _inline_gaps(reference.values))
        values = tuple(None if math.isnan(value) else value for value in reference.values)
        still = constant and len({value for value in reference.values if math.isfinite(value)}) == 1
        return SeriesFacts(named.label, len(values), runs, identity=values, pointer=named.pointer, constant=still)
    base = named.of_columns or named.pointer
    dataset = _dataset(db, owner, reference.dataset or "", base)
    index = _column(dataset, named)
    start, stop = stretch_of(dataset, reference, base)
    column = dataset.columns[index]
    part = "" if (start, stop) == (0, dataset.rows) else f" from row {start} to {stop}"
    still = column["min"] is not None and column["min"] == column["max"]
    return SeriesFacts(
        label=f"column {column['name']!r} of {dataset.name!r}{part}",
        length=stop - start,
        finite=finite_runs(stop - start, gaps(files.gaps(dataset.id, index), start, stop)),
        identity=(dataset.sha256, dataset.options, index, start, stop),
        pointer=named.pointer,
        constant=constant and (still or _never_changes(files, dataset.id, index, start, stop)),
    )


def _column(dataset: Dataset, named: Named) -> int:
    try:
        return column_index(dataset, named.reference, named.pointer)
    except InvalidInput as fault:
        if named.of_columns is None:
            raise
        raise InvalidInput(fault.detail, pointer=named.pointer) from None


def sources_in(db: Session, files: Files, operation: Operation, params: Mapping[str, Any]) -> dict[str, list[Source]]:
    """What a worker reads for the parameters of a job that was accepted."""
    known = operation.params.model_validate(params)
    return {
        name: [source_of(db, files, named.reference) for named in named_in(db, None, name, value)]
        for name, value in references_in(operation, known).items()
    }


def source_of(db: Session, files: Files, reference: SeriesReference | Mapping[str, Any]) -> Source:
    """What a worker reads for one series."""
    known = SeriesReference.model_validate(reference)
    if known.values is not None:
        return Source(name="values", values=known.values)
    dataset = _dataset(db, None, known.dataset or "", "")
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


def _never_changes(files: Files, dataset_id: str, index: int, start: int, stop: int) -> bool:
    """Whether the finite values of a stretch are all one. A lively one is left at its second value."""
    first: float | None = None
    with mapped(files.column(dataset_id, index), "d") as values:
        for at in range(start, stop, LOOKED_AT_ONCE):
            with values[at : min(at + LOOKED_AT_ONCE, stop)] as part:
                for value in part.tolist():
                    if first is None and math.isfinite(value):
                        first = value
                    elif math.isfinite(value) and value != first:
                        return False
    return first is not None


def _dataset(db: Session, owner: str | None, dataset_id: str, pointer: str) -> Dataset:
    """A dataset; of whoever without `owner`, which is for jobs that were accepted: then what is missing is gone."""
    if owner is None:
        dataset = db.get(Dataset, dataset_id)
        if dataset is None:
            raise NotFound(f"The dataset {dataset_id!r} is gone.")
        return dataset
    try:
        return datasets.dataset_of(db, dataset_id, owner)
    except NotFound as missing:
        raise InvalidInput(missing.detail, pointer=f"{pointer}/dataset") from None
