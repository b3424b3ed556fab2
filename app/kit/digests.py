"""Hashes of files, computed once for each state of a file."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits. A file is taken to be as it was while its size, its time and its inode are."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        return _of(str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=65_536)
def _of(path: str, device: int, inode: int, size: int, modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
