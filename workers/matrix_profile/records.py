"""What a job has computed so far, record by record in one file: for the next attempt, should this one end early.

Format: a JSON object for each record, which says what it is and which arrays follow, between a head of 12 bytes (its length, that of
the arrays, and a CRC-32 of both) and the arrays' bytes. The first record names the job's input. A file that was cut off is
good up to there.
"""

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

import numpy as np

from workers.reporting import Reporter

HEAD: Final = struct.Struct("<III")
MOST_BYTES: Final = 1 << 31
DTYPES: Final = ("float64", "int64")


class Record(NamedTuple):
    """about: what it is, JSON-able.  arrays: by name, float64 or int64."""

    about: dict[str, Any]
    arrays: dict[str, Any]


class Records:
    """The records of a job on these series with these settings, kept at `path`; `earlier` attempts kept theirs in these files,
    the newest first."""

    def __init__(
        self, path: Path, earlier: Sequence[Path], report: Reporter, series: Sequence[Any], *settings: Any
    ) -> None:
        self.path, self._report, self._full = path, report, False
        told = hashlib.sha256(json.dumps(settings).encode())
        for values in series:
            told.update(np.ascontiguousarray(values).data)
        self._input = {"input": told.hexdigest()}
        self.found = list(self._of_another_attempt(earlier))
        self._out = path.open("wb")
        for record in (Record(self._input, {}), *self.found):
            self.add(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._out.close()

    def add(self, record: Record) -> None:
        """A disk that is full costs what is kept, not the job."""
        if self._full:
            return
        try:
            self._out.write(_packed(record))
            self._out.flush()
        except OSError as fault:
            self._full = True
            self._report.log(f"what is computed can no longer be kept for another attempt: {fault.strerror}")

    def _of_another_attempt(self, earlier: Sequence[Path]) -> Iterator[Record]:
        for path in earlier:
            try:
                with path.open("rb") as file:
                    records = read(file)
                    if next(records, Record({}, {})).about == self._input:
                        yield from records
                        return
            except OSError:  # it got no further than this
                continue


def read(file: IO[bytes]) -> Iterator[Record]:
    """All whole records from the start of a file."""
    while len(head := file.read(HEAD.size)) == HEAD.size:
        about_size, size, told = HEAD.unpack(head)
        if about_size + size > MOST_BYTES:
            return
        body = file.read(about_size + size)
        if len(body) < about_size + size or zlib.crc32(body) != told:
            return
        yield _unpacked(json.loads(body[:about_size]), body, about_size)


def _packed(record: Record) -> bytes:
    arrays = {name: np.ascontiguousarray(each) for name, each in record.arrays.items()}
    shapes = [[name, str(each.dtype), list(each.shape)] for name, each in arrays.items()]
    about = json.dumps({"about": record.about, "arrays": shapes}).encode()
    body = about + b"".join(each.tobytes() for each in arrays.values())
    return HEAD.pack(len(about), len(body) - len(about), zlib.crc32(body)) + body


def _unpacked(told: dict[str, Any], body: bytes, start: int) -> Record:
    arrays = {}
    for name, dtype, shape in told["arrays"]:
        if dtype not in DTYPES:
            raise ValueError(f"a record has no arrays of {dtype}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype, count, start).reshape(shape).copy()
        start += 8 * count
    return Record(told["about"], arrays)
