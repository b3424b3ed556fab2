"""A dataset as one Parquet file: its numbers as they are stored, its text out of the file that was uploaded."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from workers.contract import TableSource
from workers.datasets import header
from workers.datasets.cells import cleaned
from workers.datasets.contract import Options, ReadRequest
from workers.datasets.dialect import sniff
from workers.datasets.options import MISSING, Settings, settle
from workers.datasets.reading import SOURCES
from workers.datasets.records import Records
from workers.datasets.refusals import Refused, Unfit
from workers.datasets.text import normalise
from workers.datasets.unpacking import Budget, unpacked

GROUP_ROWS = 65_536
ROOM = 1 << 40
"""Bytes. The file was read before, within the limits there are for uploads."""
TIME = "time"

Texts = dict[str, pa.ChunkedArray]


def write(source: TableSource, path: Path, say: Callable[[str], None]) -> None:
    """Columns: the time, if there is one; numbers as float64, null where missing; text, where it can be read for certain.

    The numbers are those that the dataset shows, whatever was said when it was uploaded of marks for missing values.
    """
    stored = {name: np.load(file, mmap_mode="r", allow_pickle=False) for name, file in source.columns.items()}
    times = None if source.time_path is None else np.load(source.time_path, mmap_mode="r", allow_pickle=False)
    texts = _texts(source, path.parent, say)
    when = source.time_column or TIME
    when = when if when not in stored and when not in texts else f"{when}_read"
    fields = [] if times is None else [pa.field(when, pa.timestamp("us", "UTC"))]
    fields += [pa.field(name, pa.float64()) for name in stored] + [pa.field(name, pa.string()) for name in texts]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for first in range(0, source.rows, GROUP_ROWS):
            rows = slice(first, first + GROUP_ROWS)
            columns = [] if times is None else [pa.array(times[rows], pa.timestamp("us", "UTC"))]
            columns += [pa.array(values[rows], pa.float64(), from_pandas=True) for values in stored.values()]
            columns += [text.slice(first, GROUP_ROWS).combine_chunks() for text in texts.values()]
            writer.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)))


def _texts(source: TableSource, folder: Path, say: Callable[[str], None]) -> Texts:
    """The text columns; none, and a word about it, where the file cannot be read again as it was at first."""
    times = _time_columns(source)
    wanted = [name for name in source.text_columns if name not in times]
    if not wanted:
        return {}
    try:
        return _read(source, wanted, folder)
    except (Refused, OSError, pa.ArrowException) as why:
        names = ", ".join(f"`{name}`" for name in wanted[:12])
        say(
            f"The text columns of {source.name!r} ({names}) are left out, as its file cannot be read again for certain: {why}"
        )
        return {}
    finally:
        for temporary in folder.glob("*.tmp"):
            temporary.unlink()


def _time_columns(source: TableSource) -> set[str]:
    """The column of the time, or the two that say it together."""
    told = str(source.reading.get("time_column") or "")
    return {source.time_column or "", told, *(part.strip() for part in told.split(","))}


def _read(source: TableSource, wanted: list[str], folder: Path) -> Texts:
    request = ReadRequest(
        path=source.content, folder=str(folder), max_memory_bytes=ROOM, max_unpacked_bytes=ROOM, max_cpu_seconds=86_400,
        max_columns=1_000_000,
    )  # fmt: skip
    batches = _of_delimited if source.format in ("csv", "tsv") else _of_others
    marks, found = pa.array(sorted(MISSING)), {name: list[pa.Array]() for name in wanted}
    for name, cells in batches(source, request, folder):
        if name in found:
            found[name].append(cleaned(cells, marks))
    for name, parts in found.items():
        rows = sum(map(len, parts))
        if rows != source.rows:
            raise Unfit(f"of {source.rows:,} rows of `{name}`, {rows:,} are found.")
    return {name: pa.chunked_array(parts, pa.string()) for name, parts in found.items()}


def _of_delimited(source: TableSource, request: ReadRequest, folder: Path) -> Iterator[tuple[str, pa.Array]]:
    """All cells as they are written. How the file is written was settled when it was uploaded, and is not guessed again."""
    plain = folder / "text.tmp"
    normalise(unpacked(request)[0], plain, str(source.reading.get("encoding") or "utf-8"), Budget(ROOM))
    dialect = sniff(plain, _settings(source.reading), request.max_columns)
    records, has_header = Records(plain, dialect), bool(source.reading.get("header"))
    names = header.numbered(dialect.width)
    for number, batch in records.batches():
        rows = batch
        if number == 0 and has_header:
            names, rows = header.names([column[0].as_py() for column in batch.columns], None), batch.slice(1)
        yield from zip(names, rows.columns, strict=True)


def _of_others(source: TableSource, request: ReadRequest, folder: Path) -> Iterator[tuple[str, pa.Array]]:
    path, _ = unpacked(request)
    if source.format == "json":
        normalise(path, folder / "text.tmp", None, Budget(ROOM))
        path = folder / "text.tmp"
    settings = Settings(text=frozenset([*source.columns, *source.text_columns]))
    opened = SOURCES[source.format](path, request, settings)  # type: ignore[index]
    names = [field.name for field in opened.fields]
    for index, _, values in opened.batches(None):
        yield names[index], values if pt.is_string(values.type) else values.cast(pa.string())


def _settings(reading: Mapping[str, object]) -> Settings:
    said = {name: str(reading[name]) for name in ("delimiter", "encoding") if name in reading}
    return settle(
        Options(**said, skip_rows=int(str(reading.get("lines_skipped") or 0)), header=bool(reading.get("header")))
    )
