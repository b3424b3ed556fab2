"""Reading stored columns without numpy: a `.npy` of float64 is a short header and then plain numbers."""

import ast
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEADER = struct.Struct("<6s2BH")


@contextmanager
def mapped(path: Path, code: str) -> Iterator[memoryview]:
    """The values of a one-dimensional little-endian `.npy` file, as a read-only memoryview: "d" float64, "q" int64."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        _, _, _, length = HEADER.unpack_from(content)
        header = ast.literal_eval(content[HEADER.size : HEADER.size + length].decode("latin-1"))
        expected = {"d": "<f8", "q": "<i8"}[code]
        if header["descr"] != expected:
            raise ValueError(f"{path} holds {header['descr']}, not {expected}")
        with memoryview(content) as whole, whole[HEADER.size + length :] as data, data.cast(code) as values:  # type: ignore[call-overload]
            yield values


def gaps(path: Path, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The runs of non-finite values of a column that meet [start, stop), cut to it and counted from `start`."""
    data = path.read_bytes()
    for first, last in struct.iter_unpack("<qq", data):
        if max(first, start) < min(last, stop):
            yield max(first, start) - start, min(last, stop) - start
