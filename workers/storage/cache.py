"""Fetched files by their hash: read-only, as many as fit, and the longest unused ones go first. Several workers may share a cache."""

import contextlib
import errno
import hashlib
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

STORED_NS: Final = 1_000_000_000
"""The time of change of every stored file: one that was written to since has another, and is not trusted."""
READ_ONLY: Final = 0o444
TEMPORARY: Final = ".new-"
STALE_SECONDS: Final = 86_400.0

Write = Callable[[Callable[[bytes], None]], None]
"""Given where to, writes the file's bytes."""


class Damaged(Exception):
    """What came does not have the hash that it should."""


class Cache:
    """A folder of at most `most_bytes`. A file is linked to where it is used, so that it may go from here while it is read there."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{TEMPORARY}*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > STALE_SECONDS:
                    left.unlink()

    def place(self, sha256: str, size: int, target: Path, write: Write) -> bool:
        """Have the file at `target`, from here, or from `write`. Returns whether it was here. Raises Damaged."""
        target.parent.mkdir(parents=True, exist_ok=True)
        entry = self._folder / sha256
        if self._linked(entry, size, target):
            return True
        fresh = self._folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        try:
            if self._written(fresh, write) != sha256:
                raise Damaged(f"{target.name} came damaged")
            os.chmod(fresh, READ_ONLY)
            os.utime(fresh, ns=(time.time_ns(), STORED_NS))
            _link(fresh, target)
            if self._has_room(size):
                os.replace(fresh, entry)
        finally:
            fresh.unlink(missing_ok=True)
        return False

    def _written(self, path: Path, write: Write) -> str:
        """The hash of what was written. A disk that is full has room once nothing is kept that nobody uses."""
        try:
            return written(path, write)
        except OSError as fault:
            if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            path.unlink(missing_ok=True)
            self._has_room(self._most)
            return written(path, write)

    def _linked(self, entry: Path, size: int, target: Path) -> bool:
        """Take a stored file, if it is there and as it was stored."""
        try:
            status = entry.stat()
            if (status.st_size, status.st_mtime_ns) != (size, STORED_NS):
                log.warning("%s was changed where it is kept; fetching it again", entry)
                entry.unlink(missing_ok=True)
                return False
            _link(entry, target)
            os.utime(entry, ns=(time.time_ns(), STORED_NS))
        except FileNotFoundError:  # never there, or gone this very moment
            return False
        return True

    def _has_room(self, size: int) -> bool:
        """Make room. What is in use now is not thrown away: that would free nothing."""
        there = []
        for entry in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if not entry.name.startswith(TEMPORARY):
                    there.append((entry.stat(), entry))
        total = sum(status.st_size for status, _ in there)
        idle = sorted(((s, e) for s, e in there if s.st_nlink == 1), key=lambda pair: pair[0].st_atime_ns)
        if total - sum(status.st_size for status, _ in idle) + size > self._most:
            return False
        for status, entry in idle:
            if total + size <= self._most:
                break
            entry.unlink(missing_ok=True)
            total -= status.st_size
        return True


def written(path: Path, write: Write) -> str:
    """The hash of what was written to `path`."""
    hashed = hashlib.sha256()
    with path.open("wb") as file:

        def take(part: bytes) -> None:
            hashed.update(part)
            file.write(part)

        write(take)
    return hashed.hexdigest()


def _link(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the disk is another."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)
