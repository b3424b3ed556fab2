"""Whether the workers of this machine are well: `python -m workers health`, for a container's health check.

Each worker's process notes in a file of its own when the server last answered its report. The files lie in a folder that only this user
may write: `TIDEMILL_HEALTH_DIR`, or one in the temporary folder. A process that is gone is no longer asked for.
"""

import contextlib
import json
import logging
import os
import stat
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

SECONDS: Final = 15.0
_told: set[str] = set()
"""Faults that were logged already: a note is made once a second."""


@dataclass(frozen=True)
class Note:
    """What one worker's process left."""

    pid: int
    born: int
    """When the process began, in the kernel's ticks: its number may be a stranger's by now."""
    worker: str | None = None
    answered: float | None = None
    """`time.monotonic()` of the last answer, the same clock for all processes here; None before the first."""

    def lives(self) -> bool:
        with contextlib.suppress(OSError):
            return _born(self.pid) == self.born
        return False


def _born(pid: int) -> int:
    """Raises OSError where there is no such process."""
    # The command's name may hold spaces and brackets; of what follows its last bracket, this is the twentieth word.
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def folder() -> Path:
    # Not the cache, which containers may share: their processes' numbers mean nothing to one another.
    told = os.environ.get("TIDEMILL_HEALTH_DIR")
    return Path(told or f"{tempfile.gettempdir()}/tidemill-health-{os.getuid()}")  # `_own` looks whose it is


def begin() -> None:
    """This process is about to be a worker: from here on it counts as unwell until the server has answered it. Never raises."""
    with contextlib.suppress(OSError):
        living()  # what others left goes
    note(None)


def note(worker: str | None) -> None:
    """The server has just answered this worker's report. Never raises."""
    try:
        place, pid = _own(folder()), os.getpid()
        answered = None if worker is None else time.monotonic()
        whole = json.dumps(asdict(Note(pid, _born(pid), worker, answered)))
        partial = place / f".{pid}.partial"
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as stream:
            stream.write(whole)
        partial.rename(place / f"{pid}.json")
    except Exception as fault:
        words = f"{type(fault).__name__}: {fault}"
        if words not in _told:
            _told.add(words)
            log.warning("`python -m workers health` will not know of this worker (%s)", words)


def _own(place: Path) -> Path:
    """The folder, made where it is not there. Raises OSError where somebody else may write in it."""
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(
            f"{place} is not a folder that this user alone may write; name another in TIDEMILL_HEALTH_DIR"
        )
    return place


def living() -> list[Note]:
    """The notes of workers whose process lives; those of others go. Raises OSError where the folder is not ours."""
    found = []
    for file in sorted(_own(folder()).glob("[0-9]*.json")):
        with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
            left = Note(**json.loads(file.read_text()))
            if left.lives():
                found.append(left)
            else:
                file.unlink()
    return found


def check(seconds: float) -> tuple[bool, str]:
    """Whether there is a worker here and the server answered all of them within `seconds`, and the words for it."""
    try:
        notes = living()
    except OSError as fault:
        return False, f"The workers here cannot be looked up: {fault}"
    if not notes:
        return False, "No worker runs here, or none has found its cluster yet."
    ages = [None if each.answered is None else time.monotonic() - each.answered for each in notes]
    lines = [_line(left, age) for left, age in zip(notes, ages, strict=True)]
    return all(age is not None and age <= seconds for age in ages), "\n".join(lines)


def _line(left: Note, age: float | None) -> str:
    if age is None:
        return f"A worker that has not joined yet (process {left.pid}): the server has not answered it."
    return f"Worker {left.worker} (process {left.pid}): the server answered it {age:.1f} s ago."
