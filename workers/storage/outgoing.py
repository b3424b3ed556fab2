"""What is put back of an attempt's files, and one of them on its way."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Final

PART_BYTES: Final = 1 << 20
LOGS: Final = ("log.txt", "rank-*.log")
"""Files in the attempt's folder that only grow, and that people read meanwhile."""
KEPT: Final = ("*.checkpoint", "*.ckpt", "metrics.csv")
"""Files, or folders, from which another attempt goes on."""
LAST_WRITTEN: Final = ("meta.pt", "checkpoint")

Signature = tuple[int, int, int]
"""Inode, time of the last change in ns, bytes."""


def is_log(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in LOGS)


def is_kept(name: str) -> bool:
    return any(fnmatch(name.rpartition("/")[2], pattern) for pattern in KEPT)


def signature_of(path: Path) -> Signature:
    return _signature(path.stat())


def _signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class Parcel:
    """An open file as it was when it was looked at; it may grow meanwhile."""

    file: IO[bytes]
    signature: Signature
    sha256: str

    @property
    def size(self) -> int:
        return self.signature[2]

    @property
    def modified_ns(self) -> int:
        return self.signature[1]

    def parts(self, check: Callable[[], None]) -> Iterator[bytes]:
        """Its bytes; `check` is called before each part, and may raise."""
        self.file.seek(0)
        for part in _read(self.file, self.size):
            check()
            yield part


def prepared(file: IO[bytes], is_known: Callable[[Signature], bool]) -> Parcel | None:
    """A file to be sent; None where it is known already."""
    signature = _signature(os.fstat(file.fileno()))
    if is_known(signature):
        return None
    hashed = hashlib.sha256()
    for part in _read(file, signature[2]):
        hashed.update(part)
    return Parcel(file, signature, hashed.hexdigest())


def _read(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size and (part := file.read(min(size, PART_BYTES))):
        size -= len(part)
        yield part
