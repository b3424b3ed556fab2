"""Which column, and which rows of it, a reference means."""

from app.db.tables import Dataset
from app.kit.problems import InvalidInput
from workers.contract import SeriesReference


def column_index(dataset: Dataset, reference: SeriesReference, pointer: str) -> int:
    """The position of the column a reference names; the only numeric one where it names none."""
    wanted, numeric = reference.column, [i for i, c in enumerate(dataset.columns) if c["type"] == "float64"]
    listed = ", ".join(repr(dataset.columns[i]["name"]) for i in numeric[:8])
    if wanted is None:
        if len(numeric) == 1:
            return numeric[0]
        raise InvalidInput(
            f"{dataset.name!r} has {len(numeric)} numeric columns ({listed}); name one in `column`.",
            pointer=f"{pointer}/column",
        )
    by_name = [i for i, column in enumerate(dataset.columns) if column["name"] == wanted]
    index = by_name[0] if by_name else wanted if isinstance(wanted, int) and wanted < len(dataset.columns) else None
    if index is None:
        raise InvalidInput(
            f"{dataset.name!r} has no column {wanted!r}; its numeric ones are {listed}.", pointer=f"{pointer}/column"
        )
    if index not in numeric:
        kind = dataset.columns[index]["type"]
        raise InvalidInput(
            f"Column {wanted!r} of {dataset.name!r} is {kind}, not numbers; its numeric ones are {listed}.",
            pointer=f"{pointer}/column",
        )
    return index


def stretch_of(dataset: Dataset, reference: SeriesReference, pointer: str) -> tuple[int, int]:
    start, stop = reference.start, dataset.rows if reference.stop is None else reference.stop
    if stop > dataset.rows:
        raise InvalidInput(f"stop is {stop}, but {dataset.name!r} has {dataset.rows} rows.", pointer=f"{pointer}/stop")
    if start >= stop:
        raise InvalidInput(f"start is {start}, but must lie before stop, which is {stop}.", pointer=f"{pointer}/start")
    return start, stop
