"""NPY: NumPy's own file, read without pickles and without trusting its header."""

import tokenize
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workers.datasets.contract import Format, ReadRequest
from workers.datasets.options import Settings
from workers.datasets.refusals import Damaged, Unfit, quoted
from workers.datasets.source import Batch, checked
from workers.datasets.timecolumn import Field
from workers.datasets.unpacking import CHUNK_BYTES

BROKEN_HEADER: Final = (
    ValueError,
    TypeError,
    KeyError,
    SyntaxError,
    OverflowError,
    RecursionError,
    tokenize.TokenError,
)
KINDS: Final = {"f": "numbers", "i": "numbers", "u": "numbers", "b": "text", "U": "text", "M": "times"}
"""NumPy's kinds of values that can be columns."""


@dataclass(frozen=True)
class Header:
    """The head of one .npy. column_major: whether a two-dimensional array lies column by column."""

    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[np.generic]

    @property
    def field_type(self) -> pa.DataType:
        """float64, or string, or timestamp."""
        kinds = {"numbers": pa.float64(), "text": pa.string(), "times": pa.timestamp("us")}
        if self.dtype.kind in "iu":
            return pa.from_numpy_dtype(self.dtype.newbyteorder("="))
        return kinds[KINDS[self.dtype.kind]]


def read_header(file: IO[bytes], size: int, name: str) -> Header:
    """The header at the start of `file`, which has `size` bytes; the shape it claims must be what is there.

    Raises Unfit for arrays that are no columns of numbers, Damaged where claim and bytes differ.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2, odd dtypes: refused or fine, never printed
            version = np.lib.format.read_magic(file)
            reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, column_major, dtype = reader.get(version, _no_version)(file)
    except BROKEN_HEADER as wrong:
        raise Damaged(
            f"{name} is no readable NPY array ({str(wrong)[:150]}). Write it again with numpy.save."
        ) from None
    if dtype.hasobject:
        raise Unfit(
            f"{name} holds Python objects, which means a pickle; pickles are never opened. Save an array of numbers."
        )
    if dtype.kind not in KINDS or dtype.subdtype or dtype.itemsize == 0:
        raise Unfit(
            f"{name} holds values of type {quoted(dtype)}, which are no single real numbers. Save its parts one by one."
        )
    if not 1 <= len(shape) <= 2:
        raise Unfit(f"{name} has {len(shape)} dimensions. Save an array of one, or of two: rows and columns.")
    claimed = dtype.itemsize
    for length in shape:
        claimed *= length
    if claimed != size - file.tell() or min(shape) < 0:
        raise Damaged(
            f"{name} claims {claimed:,} bytes of values and {size - file.tell():,} are there. Write and send it again."
        )
    return Header(shape, column_major and len(shape) == 2, dtype)


def _no_version(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    raise ValueError("its version is neither 1.0 nor 2.0")


def pieces(file: IO[bytes], header: Header) -> Iterator[Batch]:
    """The array's values after its header, each piece at most about CHUNK_BYTES: (column, first row, values)."""
    rows, width = header.shape[0], (*header.shape, 1)[1]
    runs, across = (width, 1) if header.column_major else (1, width)
    step = max(1, CHUNK_BYTES // (header.dtype.itemsize * across))
    for run in range(runs):
        for first in range(0, rows, step):
            count = min(step, rows - first)
            data = file.read(count * across * header.dtype.itemsize)
            if len(data) != count * across * header.dtype.itemsize:
                raise Damaged("The array is cut short. Write and send it again.")
            block = np.frombuffer(data, header.dtype).reshape(count, across)
            for column in range(across):
                yield run + column, first, _arrow(block[:, column]).cast(header.field_type)


def _arrow(values: npt.NDArray[np.generic]) -> pa.Array:
    match values.dtype.kind:
        case "f":
            return pa.array(values.astype(np.float64))
        case "M":
            return pa.array(_microseconds(values))
        case "b":
            return pa.array(np.where(values, "true", "false"), pa.string())
        case "U":
            return pa.array(_sound_text(values).tolist(), pa.string())
    return pa.array(values.astype(values.dtype.newbyteorder("=")))


def _sound_text(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The same, in native order, once it is known to be Unicode: NumPy would stumble over anything else."""
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    points = native.view(np.uint32)
    if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
        raise Damaged("The array holds text that is no Unicode. Write and send it again.")
    return native


def _microseconds(values: npt.NDArray[np.generic]) -> npt.NDArray[np.datetime64]:
    """datetime64[us]; NumPy itself would let coarser units overflow into some other time."""
    years = values.astype("datetime64[Y]")
    if ((years < np.datetime64("0001", "Y")) | (years > np.datetime64("9999", "Y"))).any():
        raise Unfit("The array holds times outside the years 1 to 9999. Correct them.")
    return values.astype("datetime64[us]")


class NpyArray:
    """An .npy file, as a source of columns: one, or one for each column of its array."""

    format: Format = "npy"
    written: Mapping[str, str | int | bool] = {}

    def __init__(self, path: Path, request: ReadRequest, settings: Settings) -> None:
        self.path = path
        with path.open("rb") as file:
            self.header = read_header(file, path.stat().st_size, "The file")
        self.rows, width = self.header.shape[0], (*self.header.shape, 1)[1]
        if width > request.max_columns:  # before making a field for each
            width = request.max_columns + 1
        self.fields = [Field(f"column_{number}", self.header.field_type) for number in range(width)]
        checked(self.fields, self.rows, request.max_columns, request.max_unpacked_bytes)

    def place(self, record: int) -> int:
        """The row, counted from 1."""
        return record + 1

    def batches(self, time: int | None) -> Iterator[Batch]:
        """Integers as they are, floats as float64, datetime64 as timestamps."""
        with self.path.open("rb") as file:
            read_header(file, self.path.stat().st_size, "The file")
            yield from pieces(file, self.header)
