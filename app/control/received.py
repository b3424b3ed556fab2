"""What workers put into the folder of an attempt: each file whole under its name, or not there; logs grow at their end."""

import errno
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from app.db.writer import StorageUnavailable
from app.kit.ids import new_id
from app.kit.problems import InvalidInput, Problem

SYNC_BYTES: Final = 64 << 20
BAD_NAME: Final = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP})
POSITIONS: Final = ".received.json"
"""In an attempt's folder: how much of each node's part of a log is there."""
_appending = threading.Lock()


class FileDamaged(Problem):
    """A file that a worker sent does not have the hash that came with it.

    It was damaged on the way; the worker sends it again.
    """

    status, title = 425, "File damaged"


class Received:
    """One file on its way into an attempt's folder, under a name of its own until `keep`."""

    def __init__(self, folder: Path, name: str, incoming: Path) -> None:
        """incoming: a folder on the same disk that is emptied when the server starts."""
        self.final = _inside(folder, name)
        self.path = incoming / new_id("put")
        self._unsynced = 0
        self._hash = hashlib.sha256()
        with _storage():
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self.path.open("wb")

    def write(self, part: bytes) -> None:
        self._hash.update(part)
        self._unsynced += len(part)
        with _storage():
            self._file.write(part)
            if self._unsynced > SYNC_BYTES:  # so that the end does not wait for all of it
                self._file.flush()
                os.fdatasync(self._file.fileno())
                self._unsynced = 0

    def sync(self) -> str:
        """On the disk. Returns the hash of what came."""
        with _storage():
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._hash.hexdigest()

    def close(self) -> None:
        """Nothing is left of what was not kept."""
        with suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)


def keep(received: Received, sha256: str, modified_ns: int) -> None:
    """Give it its name. Raises FileDamaged where it is not what was sent."""
    if received.sync() != sha256:
        raise FileDamaged(f"{received.final.name!r} came damaged; it has another hash than was sent.")
    with _storage():
        received.final.parent.mkdir(parents=True, exist_ok=True)
        os.utime(received.path, ns=(modified_ns, modified_ns))
        os.replace(received.path, received.final)


def append(folder: Path, name: str, node: int, offset: int, part: bytes) -> int:
    """Add what is new of `part`, which begins at `offset` of what this node wrote. Returns how much of that is here now."""
    path, key = _inside(folder, name), f"{node}/{name}"
    with _appending, _storage():
        path.parent.mkdir(parents=True, exist_ok=True)
        positions = _positions(folder)
        here = positions.get(key, 0)
        fresh = part[here - offset :] if offset <= here else b""
        if fresh:
            _add(path, fresh)
            positions[key] = here + len(fresh)
            told = folder / f"{POSITIONS}.new"
            told.write_text(json.dumps(positions), encoding="utf-8")
            os.replace(told, folder / POSITIONS)
        return positions.get(key, 0)


def _add(path: Path, part: bytes) -> None:
    """All of it, or nothing. A link that a job left is not followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    with open(descriptor, "ab", buffering=0) as log:
        before = os.fstat(descriptor).st_size
        try:
            written = log.write(part)
            if written != len(part):
                raise OSError(errno.ENOSPC, "only a part of it was written")
        except OSError:
            os.ftruncate(descriptor, before)
            raise


def _positions(folder: Path) -> dict[str, int]:
    with suppress(FileNotFoundError, ValueError):
        told: dict[str, int] = json.loads((folder / POSITIONS).read_text(encoding="utf-8"))
        return told
    return {}


def move(folder: Path, name: str, to: str) -> None:
    """A folder takes the place of whatever has the name `to`."""
    source, target = _inside(folder, name), _inside(folder, to)
    with _storage():
        if source.is_dir():
            old = target.with_name(f".{new_id('old')}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.replace(target, old)
            os.replace(source, target)  # there is no moment at which neither is on the disk
            shutil.rmtree(old, ignore_errors=True)
            if old.is_file():
                old.unlink()


def remove(folder: Path, name: str) -> None:
    path = _inside(folder, name)
    with _storage():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _inside(folder: Path, name: str) -> Path:
    """The path of a name that stays below the folder, whatever links a job may have left there. Raises InvalidInput."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(f"{name!r} leads out of the attempt's folder.")
    return path


@contextmanager
def _storage() -> Iterator[None]:
    """A full disk is told as what it is, and a name that is a folder too."""
    try:
        yield
    except Problem:
        raise
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageUnavailable(f"The server's storage could not take a file ({fault.strerror}).") from None
        if fault.errno in BAD_NAME:
            raise InvalidInput(f"A file cannot have this name here ({fault.strerror}).") from None
        raise
