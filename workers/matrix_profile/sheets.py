"""Each kind's result in the shapes its four files have. `times_us`: int64 (n,), when each sample is, or None."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from workers.matrix_profile.files import Sheet, chunks
from workers.matrix_profile.profile import Floats, Ints, Profile
from workers.matrix_profile.results import UNKNOWN_TIME, columns, moments


def matrix_profile(profile: Profile, window: int, times_us: Ints | None) -> Sheet:
    """A row for each window: index, time?, distance, neighbor, left, right; of k > 1, as many distances and neighbours."""
    first = slice(None) if profile.k > 1 else 0
    arrays: dict[str, Any] = {"distances": profile.distances[:, first], "indices": profile.indices[:, first]}
    arrays |= {"left_indices": profile.left, "right_indices": profile.right}
    times = _times(times_us, profile.windows)

    def tables(as_text: bool) -> Iterator[Any]:
        for part in chunks(profile.windows):
            table = _rows(part, times, as_text)
            table |= _columns("distance", profile.distances[part].T) | _columns("neighbor", profile.indices[part].T)
            yield pa.table(table | {"left": pa.array(profile.left[part]), "right": pa.array(profile.right[part])})

    said = arrays | _at(times) | {"window": window, "k": profile.k}
    return Sheet(said, arrays | _time_us(times), tables)


def multidimensional(distances: Floats, indices: Ints, window: int, times_us: Ints | None) -> Sheet:
    """distances, indices (d, l), row i of the best i+1 dimensions. A table's row for each window, d columns of each."""
    times = _times(times_us, distances.shape[1])

    def tables(as_text: bool) -> Iterator[Any]:
        for part in chunks(distances.shape[1]):
            table = _rows(part, times, as_text)
            yield pa.table(table | _columns("distance", distances[:, part]) | _columns("neighbor", indices[:, part]))

    said = {"distances": list(distances), "indices": list(indices)} | _at(times) | {"window": window}
    return Sheet(said, {"distances": distances, "indices": indices} | _time_us(times), tables)


def values(said: dict[str, Any], time_us: int | None = None) -> Sheet:
    """A few numbers, in one row. None becomes NaN in the NPZ. time_us: when it is, where times are known."""
    arrays = {name: np.asarray(np.nan if value is None else value) for name, value in said.items()}
    times = None if time_us is None else np.array([time_us], dtype=np.int64)
    at = {} if times is None else {"at": moments(times)[0]}

    def tables(as_text: bool) -> Iterator[Any]:
        time = {} if times is None else {"time": _moments(times, as_text=as_text)}
        yield pa.table({name: pa.array([value]) for name, value in said.items()} | time)

    return Sheet(said | at, arrays | ({} if times is None else {"time_us": times[0]}), tables)


def pan_profile(windows: Ints, rows: Sequence[Floats], times_us: Ints | None) -> Sheet:
    """windows (w,) ascending, rows: distances (n-m+1,) of each. A table's row for each window length and index; in the
    NPZ, rows are filled up with inf to the longest."""
    whole = np.full((len(rows), max(len(row) for row in rows)), np.inf)
    for number, row in enumerate(rows):
        whole[number, : len(row)] = row
    times = _times(times_us, whole.shape[1])

    def tables(as_text: bool) -> Iterator[Any]:
        for m, row in zip(windows.tolist(), rows, strict=True):
            for part in chunks(len(row)):
                table = {"window": pa.array(np.full(part.stop - part.start, m)), **_rows(part, times, as_text)}
                yield pa.table(table | _columns("distance", row[None, part]))

    said = {"windows": windows, "distances": list(rows)} | _at(times)
    return Sheet(said, {"windows": windows, "distances": whole} | _time_us(times), tables)


def _times(times_us: Ints | None, rows: int) -> Ints | None:
    return None if times_us is None else times_us[:rows]


def _at(times_us: Ints | None) -> dict[str, Any]:
    return {} if times_us is None else {"at": times_us.astype("datetime64[us]")}


def _time_us(times_us: Ints | None) -> dict[str, Any]:
    return {} if times_us is None else {"time_us": times_us}


def _rows(part: slice, times_us: Ints | None, as_text: bool) -> dict[str, Any]:
    index = {"index": pa.array(np.arange(part.start, part.stop))}
    return index if times_us is None else index | {"time": _moments(times_us[part], as_text=as_text)}


def _columns(name: str, quantities: Any) -> dict[str, Any]:
    """One column for each row of `quantities`; nulls where a distance is not finite."""
    named = zip(columns(name, len(quantities)), quantities, strict=True)
    return {
        column: pa.array(np.ascontiguousarray(each), mask=~np.isfinite(each) if each.dtype == np.float64 else None)
        for column, each in named
    }


def _moments(times_us: Ints, *, as_text: bool) -> Any:
    if as_text:
        return pa.array(moments(times_us), type=pa.string())
    return pa.array(times_us, type=pa.int64(), mask=times_us == UNKNOWN_TIME).cast(pa.timestamp("us", tz="UTC"))
