"""A result as files: JSON, CSV, Parquet and NPZ, each whole or not there at all."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from workers.matrix_profile.results import finite

CHUNK: Final = 1 << 16
"""Rows turned into Python objects at once."""


@dataclass(frozen=True)
class Sheet:
    """A result, ready to be written in each of the four formats.

    json: what its JSON says, in order: plain values, arrays (n,) or (n, k), or lists of arrays (n,), one list each;
    non-finite numbers become null.  arrays: the NPZ.  tables: the tables of CSV and Parquet, in parts, given whether
    their times are to be text.
    """

    json: dict[str, Any]
    arrays: dict[str, Any]
    tables: Callable[[bool], Iterator[Any]]


def save(sheet: Sheet, about: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Write the four files into `folder`, at the same time, for most of it is Arrow's work or the disk's; `about` stands at the
    end of the JSON. Returns an artifact {name, bytes, sha256, media_type} for each."""
    whole = Sheet(sheet.json | about, sheet.arrays, sheet.tables)
    with ThreadPoolExecutor(len(FORMATS)) as pool:
        return list(pool.map(lambda form: _file(folder / form[0], form[1], form[2], whole), FORMATS))


def _json(sheet: Sheet, out: IO[bytes]) -> None:
    """Strict JSON, streamed: a value of a million rows never stands in memory as Python objects."""
    for number, (name, value) in enumerate(sheet.json.items()):
        out.write(b",\n" if number else b"{")
        out.write(f"{json.dumps(name)}: ".encode())
        if isinstance(value, np.ndarray):
            _array(value, out)
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            for row, values in enumerate(value):
                out.write(b",\n" if row else b"[")
                _array(values, out)
            out.write(b"]")
        else:
            out.write(json.dumps(value, allow_nan=False).encode())
    out.write(b"}")


def _array(values: Any, out: IO[bytes]) -> None:
    out.write(b"[")
    for part in chunks(len(values)):
        text = _numbers(values[part]) if values.dtype.kind in "fi" and values.ndim == 1 else _anything(values[part])
        out.write((b", " if part.start else b"") + text)
    out.write(b"]")


def _numbers(values: Any) -> bytes:
    """Arrow writes the shortest text that reads back as the same number, a dozen times as fast as `json`."""
    mask = ~np.isfinite(values) if values.dtype.kind == "f" else None
    texts = pa.array(np.ascontiguousarray(values), mask=mask).cast(pa.string()).fill_null("null")
    joined = pa.compute.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), ", ")
    return bytes(joined[0].as_buffer())


def _anything(values: Any) -> bytes:
    return json.dumps(finite(values), allow_nan=False)[1:-1].encode()


def _csv(sheet: Sheet, out: IO[bytes]) -> None:
    layout = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    for number, table in enumerate(sheet.tables(True)):
        if not number:
            out.write((",".join(table.column_names) + "\n").encode())
        pa.csv.write_csv(table, out, layout)


def _parquet(sheet: Sheet, out: IO[bytes]) -> None:
    tables = sheet.tables(False)
    first = next(tables)
    with pa.parquet.ParquetWriter(out, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _npz(sheet: Sheet, out: IO[bytes]) -> None:
    np.savez(out, **sheet.arrays)


FORMATS: Final = (
    ("result.json", "application/json", _json),
    ("result.csv", "text/csv", _csv),
    ("result.parquet", "application/vnd.apache.parquet", _parquet),
    ("result.npz", "application/x-npz", _npz),
)


def chunks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK))


def _file(path: Path, media_type: str, write: Callable[[Sheet, IO[bytes]], None], sheet: Sheet) -> dict[str, Any]:
    """Write under another name, put it on the disk, then give it its own."""
    unfinished = path.with_name(path.name + ".partial")
    with unfinished.open("wb") as out:
        write(sheet, out)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)
    with path.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest, "media_type": media_type}
