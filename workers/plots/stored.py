"""Reading a result row by row: a pan profile may be larger than the memory a picture may use."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from workers.matrix_profile.profile import Floats


def array(result: Path, name: str) -> Floats:
    """One array of a result.npz, whole."""
    with np.load(result) as stored:
        return np.asarray(stored[name])


def rows(result: Path, name: str) -> Iterator[Floats]:
    """The rows of a two-dimensional array of a result.npz, one after the other."""
    with zipfile.ZipFile(result) as archive, archive.open(f"{name}.npy") as member:
        npy.read_magic(member)
        (count, columns), by_column, dtype = npy.read_array_header_1_0(member)
        if by_column:
            raise ValueError(f"{name!r} is stored by columns; results are stored by rows")
        for _ in range(count):
            yield np.frombuffer(member.read(columns * dtype.itemsize), dtype=dtype)
