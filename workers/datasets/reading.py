"""The door of the room: a request in; columns on disk and an answer out."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from workers.datasets import formats, strays, timecolumn
from workers.datasets.cells import cleaned
from workers.datasets.contract import Answer, Column, Complaint, Format, ReadRequest, Table
from workers.datasets.delimited import DelimitedText
from workers.datasets.npy import NpyArray
from workers.datasets.npz import NpzArchive
from workers.datasets.objects import JsonColumns
from workers.datasets.options import Settings, settle
from workers.datasets.order import Order
from workers.datasets.parquet import ParquetTable
from workers.datasets.refusals import BadOption, Refused, Unfit, quoted
from workers.datasets.source import Source, is_numeric
from workers.datasets.store import Float64s, GrowingArray, StoredColumn
from workers.datasets.text import normalise
from workers.datasets.timecolumn import TimeChoice
from workers.datasets.times import TimeSurvey, microseconds
from workers.datasets.unpacking import Budget, unpacked

HEAD_BYTES: Final = 4096

SOURCES: Final[dict[Format, Callable[[Path, ReadRequest, Settings], Source]]] = {
    "csv": DelimitedText,
    "tsv": DelimitedText,
    "parquet": ParquetTable,
    "npy": NpyArray,
    "npz": NpzArchive,
    "json": JsonColumns,
}
IMPOSSIBLE_OPTIONS: Final[dict[Format, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("parquet", "npy", "npz"), ("delimiter", "decimal", "thousands", "header", "skip_rows", "encoding", "text")
    ),
    "json": ("delimiter", "decimal", "thousands", "header", "skip_rows"),
}
"""Options that say how text is written, and the formats that are not text, or say it themselves."""


def read(request: ReadRequest) -> Answer:
    """Turn the file into columns in the request's folder, or say why not. Whatever the bytes, this returns an answer.

    After an error nothing is left in the folder.
    """
    folder = Path(request.folder)
    try:
        return Answer(ok=_table(request, folder))
    except Refused as refused:
        complaint = Complaint(
            detail=refused.detail, row=refused.row, column=_speakable(refused.column), option=refused.option
        )
    except MemoryError:
        complaint = Complaint(
            detail=f"Reading the file needs more than the {request.max_memory_bytes:,} bytes of memory there are for it. "
            "Send fewer rows or columns; Parquet needs the least memory, JSON the most."
        )
    finally:
        for temporary in folder.glob("*.tmp"):
            temporary.unlink()
    shutil.rmtree(folder / "columns", ignore_errors=True)
    (folder / "time.npy").unlink(missing_ok=True)
    return Answer(error=complaint)


def _table(request: ReadRequest, folder: Path) -> Table:
    settings = settle(request.options, formats.charset(request))
    source = _opened(request, settings, folder)
    _survey_times(source, settings)
    timecolumn.refuse_unknown(settings.text, source.fields)
    choice = timecolumn.choose(source.fields, settings, source.place)
    order = Order()
    columns = _stored(source, settings, choice, order, folder)
    if choice and order.repeated and order.whole_days:
        timecolumn.refuse_dates_alone(source.fields, choice, settings)
    if not any(column.type == "float64" and column.missing < source.rows for column in columns):
        raise Unfit(
            "No column holds numbers besides the time and missing values. Send a file with a column of numbers."
        )
    time_column = source.fields[choice.index].name if choice else None
    called = "line" if source.format in ("csv", "tsv") else "row"
    return Table(
        format=source.format,
        rows=source.rows,
        columns=columns,
        time_column=time_column,
        first_time=order.first,
        last_time=order.last,
        reading={**source.written, **_of_time(source, choice)},
        notes=order.notes(source.place, called) + _notes(source, columns, choice),
    )


def _of_time(source: Source, choice: TimeChoice | None) -> dict[str, str]:
    """How the time is written: its format, and its two columns where it has two."""
    if choice is None or choice.reading is None:
        return {}
    said = {"time_format": choice.reading if isinstance(choice.reading, str) else choice.reading.name}
    if choice.clock is not None:
        said["time_column"] = f"{source.fields[choice.index].name},{source.fields[choice.clock].name}"
    return said


def _notes(source: Source, columns: list[Column], choice: TimeChoice | None) -> list[str]:
    """What was read as text and may have been meant as something else."""
    notes = []
    for field, column in zip(source.fields, columns, strict=True):
        first = field.times.first.text if field.times and field.times.first else ""
        if column.type != "text":
            continue
        if choice is None and strays.DATE_LIKE.fullmatch(first):
            notes.append(
                f"Column {quoted(field.name)} looks like dates ({quoted(first)}) and was read as text; set `time_column` "
                "and `time_format` (such as %m/%d/%y)."
            )
        elif sign := strays.sign_beside(first):
            notes.append(
                f"Column {quoted(field.name)} was read as text: {quoted(first)} is no number with {quoted(sign)} in it."
            )
    return notes


def _opened(request: ReadRequest, settings: Settings, folder: Path) -> Source:
    path, file_name = unpacked(request)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise Unfit("The file is empty. Send one with at least one row of numbers.")
    format = formats.decide(head, request, file_name)
    for option in IMPOSSIBLE_OPTIONS.get(format, ()):
        if option in settings.given:
            raise BadOption(f"`{option}` says how text is written; this file is {format}. Leave it out.", option=option)
    if format in ("csv", "tsv", "json"):
        used = normalise(path, folder / "text.tmp", settings.encoding, Budget(request.max_unpacked_bytes))
        settings = replace(settings, encoding=used)
        path = folder / "text.tmp"
    if format == "tsv" and settings.delimiter is None:
        settings = replace(settings, delimiter="\t")
    return SOURCES[format](path, request, settings)


def _survey_times(source: Source, settings: Settings) -> None:
    """Look for times in the text columns of formats that have types (text files have been surveyed on opening)."""
    surveyed = {
        i
        for i, field in enumerate(source.fields)
        if pt.is_string(field.type) and field.times is None and field.name not in settings.text
    }
    if not surveyed:
        return
    markers = pa.array(sorted(settings.missing))
    for i in surveyed:
        source.fields[i].times = TimeSurvey(timecolumn.readings(settings))
    for i, first_record, values in source.batches(None):
        if i in surveyed and (times := source.fields[i].times):
            times.add(cleaned(values, markers), first_record)


def _stored(source: Source, settings: Settings, choice: TimeChoice | None, order: Order, folder: Path) -> list[Column]:
    """Write every column that is numbers, and the time; say what each column holds."""
    (folder / "columns").mkdir()
    time = choice.index if choice else None
    stored = {
        i: StoredColumn(folder / "columns", i)
        for i, field in enumerate(source.fields)
        if is_numeric(field.type) and i != time
    }
    moments = GrowingArray(folder / "time.npy", "<i8") if choice else None
    missing = dict.fromkeys(range(len(source.fields)), 0)
    markers = pa.array(sorted(settings.missing))
    halves: dict[int, pa.Array] = {}
    """Dates that wait for their times of day, or the other way round."""
    for i, first_record, values in source.batches(time):
        values = cleaned(values, markers) if pt.is_string(values.type) else values
        if choice and choice.clock is not None and i in (time, choice.clock):
            halves[i] = values
            missing[i] += values.null_count if i != time else 0
            if len(halves) < 2:
                continue
            values = pc.binary_join_element_wise(halves.pop(choice.index), halves.pop(choice.clock), " ")
            i = choice.index
        if choice and moments and i == time:
            read = microseconds(values, choice.reading, source.fields[i].name, first_record, source.place)
            order.add(read, first_record)
            moments.append(read)
        elif i in stored:
            stored[i].append(_floats(values, settings.missing_numbers))
        else:
            missing[i] += values.null_count
    if moments:
        moments.finish()
    return [
        stored[i].finish(field.name)
        if i in stored
        else Column(name=field.name, type="time" if field.is_time or i == time else "text", missing=missing[i])
        for i, field in enumerate(source.fields)
    ]


def _floats(values: pa.Array, missing: tuple[float, ...]) -> Float64s:
    """float64 (n,): the numbers, NaN where null or where the sender says that the number means missing."""
    numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isin(numbers, missing), np.nan, numbers) if missing else numbers


def _speakable(name: str | int | None) -> str | int | None:
    """A column's name as JSON can carry it."""
    return name.encode("utf-8", "replace").decode() if isinstance(name, str) else name
