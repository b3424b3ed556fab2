"""Reading what a reference became: a series out of a `.npy` or Parquet file, a table out of Parquet."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from workers.training.data.arguments import listed

if TYPE_CHECKING:
    import pyarrow as pa

Floats = npt.NDArray[np.float64]


def read_series(path: str, argument: str) -> Floats:
    """float64 (n,), not finite where missing; a `.npy` is mapped, not read. Raises ValueError for what is no series."""
    _there(path, argument)
    if path.endswith(".parquet"):
        return _only_numbers(path, argument)
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as wrong:
        raise ValueError(f"`{argument}` is {path!r}, which is no `.npy` file of numbers ({wrong}).") from None
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"`{argument}` is {path!r}, which holds {values.dtype} of shape {values.shape}; a series is numbers of shape (n,)."
        )
    return np.asarray(values) if values.dtype == np.float64 else np.asarray(values, dtype=np.float64)


def read_table(path: str, argument: str) -> "pa.Table":
    """A whole Parquet file. Raises ValueError for any other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _there(path, argument)
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as wrong:
        hint = " A dataset without `column` is a table; with one, a series." if path.endswith(".npy") else ""
        raise ValueError(f"`{argument}` is {path!r}, which is no Parquet file ({str(wrong)[:120]}).{hint}") from None


def numbers(column: "pa.ChunkedArray") -> Floats:
    """float64 (n,), NaN where null."""
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def is_number(kind: "pa.DataType") -> bool:
    """Whether a column of this type is numbers."""
    import pyarrow.types as pt

    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _there(path: str, argument: str) -> None:
    if not isinstance(path, str):
        raise ValueError(f"`{argument}` is {path!r}, but must be a path, or a reference to a dataset.")
    if not Path(path).is_file():
        raise ValueError(f"`{argument}` is {path!r}, and there is no such file.")


def _only_numbers(path: str, argument: str) -> Floats:
    table = read_table(path, argument)
    names = [field.name for field in table.schema if is_number(field.type)]
    if len(names) != 1:
        raise ValueError(
            f"`{argument}` names a table with {len(names)} columns of numbers ({listed(names)}); name one: "
            '{"dataset": "ds_…", "column": "…"}.'
        )
    return numbers(table.column(names[0]))
