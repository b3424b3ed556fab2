"""Where columns go: memory-mappable .npy files, the runs of their gaps, and what is to be said of them."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workers.datasets.contract import Column

HEADER_BYTES = 128
"""Room for a .npy header of any length of array; the length is known only at the end."""

Float64s = npt.NDArray[np.float64]


class GrowingArray:
    """A one-dimensional .npy file (version 1, little-endian) written piece by piece.

    No file stays open between pieces: a table may have more columns than a process may have files.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype, self.length = path, dtype, 0
        path.write_bytes(bytes(HEADER_BYTES))

    def append(self, values: npt.NDArray[np.generic]) -> None:
        """values: (n,) of the array's type."""
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(values, self.dtype).tobytes())
        self.length += len(values)

    def finish(self) -> None:
        """Write the header; now the file is a .npy."""
        described = f"{{'descr': '{self.dtype}', 'fortran_order': False, 'shape': ({self.length},), }}"
        head = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
        with self.path.open("r+b") as file:
            file.write(head + described.encode().ljust(HEADER_BYTES - 11) + b"\n")


class StoredColumn:
    """One float64 column on its way to disk.

    `<index>.npy` holds the values, `<index>.gaps` int64 pairs [start, stop): the runs of non-finite ones, in order.
    """

    def __init__(self, folder: Path, index: int) -> None:
        self.array = GrowingArray(folder / f"{index}.npy", "<f8")
        self.gaps = folder / f"{index}.gaps"
        self.gaps.touch()
        self.missing = self.infinite = 0
        self.min, self.max = math.inf, -math.inf
        self.open_gap: int | None = None

    def append(self, values: Float64s) -> None:
        """values: float64 (n,), NaN where missing."""
        finite = np.isfinite(values)
        self._gaps(finite, self.array.length)
        self.array.append(values)
        missing = int(np.isnan(values).sum())
        self.missing += missing
        self.infinite += int(len(values) - finite.sum()) - missing
        if finite.any():
            self.min = min(self.min, float(values.min(where=finite, initial=math.inf)))
            self.max = max(self.max, float(values.max(where=finite, initial=-math.inf)))

    def finish(self, name: str) -> Column:
        """Close the files and say what the column holds."""
        self._gaps(np.ones(1, bool), self.array.length)
        self.array.finish()
        some = self.min <= self.max
        return Column(
            name=name,
            type="float64",
            missing=self.missing,
            infinite=self.infinite,
            min=self.min if some else None,
            max=self.max if some else None,
        )

    def _gaps(self, finite: npt.NDArray[np.bool_], first: int) -> None:
        """Write the runs that end in this stretch; one that reaches its end stays open."""
        before = self.open_gap is None
        edges = np.flatnonzero(np.diff(finite, prepend=before)) + first
        bounds = edges.tolist() if self.open_gap is None else [self.open_gap, *edges.tolist()]
        self.open_gap = int(bounds.pop()) if len(bounds) % 2 else None
        if bounds:
            with self.gaps.open("ab") as file:
                file.write(np.array(bounds, "<i8").tobytes())
