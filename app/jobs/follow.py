"""Following a job: until it is final, through its event log, or through what it prints. No connection is held meanwhile."""

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from sqlmodel import Session

from app.db.reader import Reader
from app.db.tables import Job
from app.files import Files
from app.jobs import queries
from app.jobs.states import FINAL
from app.kit import sse
from app.kit.changes import Changes
from app.kit.problems import NotFound

LOOK_SECONDS = 0.5
LOG_FILE = "log.txt"
CHUNK = 1 << 16


async def until_final(
    reader: Reader, changes: Changes, stopping: asyncio.Event, job_id: str, owner: str, seconds: float
) -> Job:
    """The job once it is final, or as it is after `seconds`, or when the server stops."""
    deadline = asyncio.get_running_loop().time() + seconds
    with changes.listen(queries.job_topic(job_id)) as changed:
        while (left := deadline - asyncio.get_running_loop().time()) > 0 and not stopping.is_set():
            changed.clear()
            if await reader.run(lambda db: queries.state_of(db, job_id, owner)) in FINAL:
                break
            with contextlib.suppress(TimeoutError):
                # Now and then it looks whether the server is stopping.
                await asyncio.wait_for(changed.wait(), min(left, 1.0))
    return await reader.run(lambda db: queries.job_of(db, job_id, owner))


class EventLog:
    """A job's events as a source for `app.kit.sse`."""

    def __init__(self, reader: Reader, changes: Changes, job_id: str) -> None:
        self._reader, self._changes, self._job_id = reader, changes, job_id

    async def read(self, after: int) -> Sequence[sse.Event]:
        def query(db: Session) -> list[sse.Event]:
            return [
                sse.Event(e.seq, e.type, {"seq": e.seq, "at": e.at, "type": e.type, "data": e.data})
                for e in queries.events_after(db, self._job_id, after, 200)
            ]

        return await self._reader.run(query)

    async def changed(self) -> None:
        with self._changes.listen(queries.job_topic(self._job_id)) as changed:
            await changed.wait()

    async def finished(self) -> bool:
        def query(db: Session) -> bool:
            try:
                return queries.state_of(db, self._job_id) in FINAL
            except NotFound:  # deleted meanwhile
                return True

        return await self._reader.run(query)


def log_files(files: Files, job_id: str, name: str) -> list[Path]:
    """What each attempt printed, in order: plain files alone, as `_read` takes no others."""
    attempts = [each for each in files.job(job_id).glob("*") if each.name.isdecimal() and not each.is_symlink()]
    found = [each / name for each in sorted(attempts, key=lambda each: int(each.name))]
    return [path for path in found if path.is_file() and not path.is_symlink()]


async def printed(files: Files, job_id: str, name: str = LOG_FILE) -> AsyncIterator[bytes]:
    """What the job printed so far, attempt after attempt."""
    for path in log_files(files, job_id, name):
        offset = 0
        while chunk := await asyncio.to_thread(_read, path, offset):
            yield chunk
            offset += len(chunk)


async def printing(
    log: EventLog, files: Files, stopping: asyncio.Event, job_id: str, name: str = LOG_FILE
) -> AsyncIterator[bytes]:
    """What the job prints, as it prints it, until it is final."""
    offsets: dict[Path, int] = {}
    while True:
        finished = await log.finished()
        for path in log_files(files, job_id, name):
            while chunk := await asyncio.to_thread(_read, path, offsets.get(path, 0)):
                offsets[path] = offsets.get(path, 0) + len(chunk)
                yield chunk
        if finished or stopping.is_set():
            return
        await asyncio.sleep(LOOK_SECONDS)


def _read(path: Path, offset: int) -> bytes:
    """Nothing of what is not, or no longer, a plain file: what a job leaves may lead to what it was never to see, or be a pipe."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, _NoPlainFile), _opened(path) as descriptor:
        return os.pread(descriptor, CHUNK, offset)
    return b""


class _NoPlainFile(Exception):
    """A link, a folder, a pipe or a device."""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # A pipe without a writer would be waited for.
            plain = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(path.name, plain, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise _NoPlainFile from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _NoPlainFile
        yield descriptor
    finally:
        os.close(descriptor)
