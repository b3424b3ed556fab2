"""A full profile as files: JSON, CSV, Parquet and NPZ, each whole or not there at all."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from workers.matrix_profile.profile import Ints, Profile
from workers.matrix_profile.results import UNKNOWN_TIME, columns, finite, moments

CHUNK: Final = 1 << 16
"""Rows turned into Python objects at once."""


@dataclass(frozen=True)
class Result:
    """A profile with what its files say beside it. times_us: int64 (l,), when each window begins, or None."""

    profile: Profile
    window: int
    times_us: Ints | None
    about: dict[str, Any]


def save(result: Result, folder: Path) -> list[dict[str, Any]]:
    """Write the four files into `folder`. Returns an artifact {name, bytes, sha256, media_type} for each."""
    return [_file(folder / name, media_type, write, result) for name, media_type, write in FORMATS]


def _json(result: Result, out: IO[bytes]) -> None:
    """Strict JSON, streamed: a value of a million rows never stands in memory as Python objects."""
    out.write(b"{")
    for name, values in _lists(result).items():
        out.write(f'"{name}": ['.encode())
        for part in _chunks(len(values)):
            text = json.dumps(_plain(name, values[part]), allow_nan=False)
            out.write((", " if part.start else "").encode() + text[1:-1].encode())
        out.write(b"],\n")
    out.write(json.dumps(result.about | {"window": result.window, "k": result.profile.k}, allow_nan=False)[1:].encode())


def _plain(name: str, values: Any) -> Any:
    return moments(values) if name == "at" else finite(values) if name == "distances" else values.tolist()


def _lists(result: Result) -> dict[str, Any]:
    """The profile's arrays by the names they have in a result; of k=1, vectors."""
    profile, first = result.profile, slice(None) if result.profile.k > 1 else 0
    lists = {"distances": profile.distances[:, first], "indices": profile.indices[:, first]}
    lists |= {"left_indices": profile.left, "right_indices": profile.right}
    return lists if result.times_us is None else lists | {"at": result.times_us}


def _csv(result: Result, out: IO[bytes]) -> None:
    layout = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    for number, table in enumerate(_tables(result, as_text=True)):
        if not number:
            out.write((",".join(table.column_names) + "\n").encode())
        pa.csv.write_csv(table, out, layout)


def _parquet(result: Result, out: IO[bytes]) -> None:
    tables = _tables(result, as_text=False)
    first = next(tables)
    with pa.parquet.ParquetWriter(out, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _npz(result: Result, out: IO[bytes]) -> None:
    np.savez(out, **{{"at": "time_us"}.get(name, name): values for name, values in _lists(result).items()})


FORMATS: Final = (
    ("result.json", "application/json", _json),
    ("result.csv", "text/csv", _csv),
    ("result.parquet", "application/vnd.apache.parquet", _parquet),
    ("result.npz", "application/x-npz", _npz),
)


def _tables(result: Result, *, as_text: bool) -> Iterator[Any]:
    """The profile as tables of CHUNK rows: index, time?, distance, neighbor, left, right; nulls where inf."""
    profile = result.profile
    for part in _chunks(profile.windows):
        table = {"index": pa.array(np.arange(part.start, part.stop))}
        if result.times_us is not None:
            table["time"] = _moments(result.times_us[part], as_text=as_text)
        for number, name in enumerate(columns("distance", profile.k)):
            distances = profile.distances[part, number]
            table[name] = pa.array(distances, mask=~np.isfinite(distances))
        for number, name in enumerate(columns("neighbor", profile.k)):
            table[name] = pa.array(np.ascontiguousarray(profile.indices[part, number]))
        table |= {"left": pa.array(profile.left[part]), "right": pa.array(profile.right[part])}
        yield pa.table(table)


def _moments(times_us: Ints, *, as_text: bool) -> Any:
    if as_text:
        return pa.array(moments(times_us), type=pa.string())
    return pa.array(times_us, type=pa.int64(), mask=times_us == UNKNOWN_TIME).cast(pa.timestamp("us", tz="UTC"))


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK))


def _file(path: Path, media_type: str, write: Callable[[Result, IO[bytes]], None], result: Result) -> dict[str, Any]:
    """Write under another name, put it on the disk, then give it its own."""
    unfinished = path.with_name(path.name + ".partial")
    with unfinished.open("wb") as out:
        write(result, out)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)
    with path.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": digest, "media_type": media_type}
