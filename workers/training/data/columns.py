"""How columns of a table become numbers for a network, as it is kept with the checkpoint."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workers.training.data.arguments import listed
from workers.training.data.files import Floats, is_number, numbers

if TYPE_CHECKING:
    import pyarrow as pa

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Feature:
    """One column: standardised where `values` is None, with a sign beside it where it has gaps; else one-hot."""

    name: str
    center: float = 0.0
    scale: float = 1.0
    gaps: bool = False
    values: list[str] | None = None

    @property
    def width(self) -> int:
        return 1 + self.gaps if self.values is None else len(self.values)

    def encode(self, table: "pa.Table") -> npt.NDArray[np.float32]:
        """float32 (n, width). A gap is the mean, a text that training did not have is none of those it had."""
        column = column_of(table, self.name)
        if self.values is None:
            if not is_number(column.type):
                raise ValueError(f"Column `{self.name}` is {column.type}; the model was trained with numbers there.")
            plain = numbers(column)
            finite = np.isfinite(plain)
            scaled = np.where(finite, (np.where(finite, plain, 0.0) - self.center) / self.scale, 0.0)
            return np.stack([scaled, ~finite][: self.width], axis=1).astype(np.float32)
        return np.asarray(codes(column, self.values)[:, None] == np.arange(len(self.values)), dtype=np.float32)


@dataclass(frozen=True)
class Target:
    """What is to be predicted: one of `values`, or a number about `center` in units of `scale`.

    usual: the most frequent label's number, or the median, in training: the prediction of who does not look.
    """

    name: str
    usual: float
    center: float = 0.0
    scale: float = 1.0
    values: list[str] | None = None

    def encode(self, column: "pa.ChunkedArray") -> Floats:
        """float64 (n,): numbers of labels or scaled values, NaN where there is none."""
        if self.values is not None:
            found = codes(column, self.values)
            return np.where(found >= 0, found, np.nan)
        plain = numbers(column)
        return (np.where(np.isfinite(plain), plain, np.nan) - self.center) / self.scale


@dataclass(frozen=True)
class Encoding:
    """All columns of a model's table."""

    features: list[Feature] = field(default_factory=list)
    target: Target | None = None

    @property
    def width(self) -> int:
        return sum(one.width for one in self.features)

    def encode(self, table: "pa.Table") -> npt.NDArray[np.float32]:
        """float32 (n, width)."""
        return np.concatenate([one.encode(table) for one in self.features], axis=1)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(told: dict[str, Any]) -> "Encoding":
        target = told["target"]
        return Encoding([Feature(**one) for one in told["features"]], target and Target(**target))


def labels(column: "pa.ChunkedArray", name: str) -> list[str | None]:
    """Each row's label as text; whole numbers without a point."""
    if is_number(column.type):
        plain = numbers(column)
        return [_number_text(one) if math.isfinite(one) else None for one in plain.tolist()]
    found = texts(column)
    if found is None:
        raise ValueError(f"`target` is `{name}`, which is {column.type}, neither text nor numbers.")
    return found.to_pylist()  # type: ignore[no-any-return]


def codes(column: "pa.ChunkedArray", values: Sequence[str]) -> Rows:
    """int64 (n,): which of `values` each row is, -1 for none of them."""
    place = {value: number for number, value in enumerate(values)}
    return np.array([-1 if one is None else place.get(one, -1) for one in labels(column, "")], np.int64)


def known(column: "pa.ChunkedArray") -> npt.NDArray[np.bool_]:
    """bool (n,): whether there is a value."""
    if is_number(column.type):
        return np.isfinite(numbers(column))
    return np.asarray(column.is_valid().to_numpy(), dtype=bool)


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def texts(column: "pa.ChunkedArray") -> "pa.ChunkedArray | None":
    """A column of text, categories or truth values as strings; None for any other."""
    import pyarrow as pa
    import pyarrow.types as pt

    kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind) or pt.is_boolean(kind):
        return column.cast(pa.string())
    return None


def column_of(table: "pa.Table", name: str) -> "pa.ChunkedArray":
    """A column by its name. Raises ValueError, with the names there are, where there is none."""
    if name not in table.column_names:
        raise ValueError(f"There is no column `{name}` in the table; there are {listed(table.column_names)}.")
    return table.column(name)
