"""Puts what an attempt writes back to the server, while it runs: logs as they grow, checkpoints as often as their cost allows."""

import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Final

from workers.link import Refused, ServerAway
from workers.storage.base import Interrupted
from workers.storage.depot import PART_BYTES, Depot, persistently

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
LOGS: Final = ("log.txt", "rank-*.log")
"""Files in the attempt's folder that only grow, and that people read meanwhile."""
KEPT: Final = ("*.checkpoint", "*.ckpt", "metrics.csv")
"""Files, or folders, from which another attempt goes on."""
LAST_WRITTEN: Final = ("meta.pt", "checkpoint")
ARRIVING: Final = ".arriving-"
SHARE: Final = 10.0
"""A checkpoint is sent again once this many times the seconds have passed that sending it took."""

Signature = tuple[int, int, int]


def is_log(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in LOGS)


class Courier:
    """Of one attempt's folder on this worker. `deliver` may be called while its thread runs."""

    def __init__(self, depot: Depot, folder: Path) -> None:
        self.folder = folder
        self._depot = depot
        self._sent: dict[str, Signature] = {}
        self._logged: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def deliver(self, names: Sequence[str], unless: threading.Event, patience_seconds: float | None = None) -> bool:
        """Logs, checkpoints and the files of these names are there when it returns True. Raises Refused."""
        until = None if patience_seconds is None else time.monotonic() + patience_seconds
        with self._lock:
            try:
                persistently(lambda: self._send_all(names), unless, until)
            except Interrupted:
                return False
        return True

    def _send_all(self, names: Sequence[str]) -> None:
        self._send_what_is_new(at_once=True)
        for name in names:
            if not is_log(name):
                self._put(self.folder / name, name)

    def _run(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            try:
                with self._lock:
                    self._send_what_is_new(at_once=False)
            except ServerAway as away:
                log.info("the server is away (%s); trying again", away)
            except Refused as refusal:
                log.info("the server takes no more files of this attempt: %s", refusal)
                return
            except OSError as fault:  # moved or deleted at this very moment, by the job
                log.info("a file could not be sent: %s", fault)

    def _send_what_is_new(self, at_once: bool) -> None:
        for name in sorted(path.name for path in self.folder.glob("*") if is_log(path.name)):
            self._extend(name)
        kept = dict(self._kept())
        for name, path in kept.items():
            if at_once or time.monotonic() >= self._due.get(name, 0.0):
                started = time.monotonic()
                self._put_folder(path, name) if path.is_dir() else self._put(path, name)
                now = time.monotonic()
                self._due[name] = now + SHARE * (now - started)
        for name in [each for each in self._sent if _is_kept(each) and not (self.folder / each).exists()]:
            self._depot.delete(name)
            del self._sent[name]

    def _kept(self) -> Iterator[tuple[str, Path]]:
        """Checkpoints that are whole, not the files within one that is a folder."""
        for path in sorted(self.folder.rglob("*")):
            parts = path.relative_to(self.folder).parts
            if any(part.startswith(".") for part in parts) or any(_is_kept(part) for part in parts[:-1]):
                continue
            if _is_kept(path.name) and not path.is_symlink():
                yield "/".join(parts), path

    def _extend(self, name: str) -> None:
        with (self.folder / name).open("rb") as file:
            offset = self._logged.get(name, 0)
            file.seek(offset)
            while part := file.read(PART_BYTES):
                here = self._depot.extend(name, offset, part)
                if here <= offset:
                    raise ServerAway(f"{name} does not grow on the server")
                self._logged[name] = offset = here
                file.seek(offset)

    def _put(self, path: Path, name: str, as_name: str | None = None) -> None:
        """Send a file, unless it was sent as it is now."""
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            signature = _signature(path)
            if self._sent.get(name) != signature:
                size = signature[2]
                digest = _digest(file, size)
                file.seek(0)
                self._depot.put(as_name or name, file, size, digest, signature[1])
                self._sent[name] = signature

    def _put_folder(self, path: Path, name: str) -> None:
        """Send a checkpoint of many files, which takes the place of the one before when all of them are there."""
        files = sorted(
            (each for each in path.rglob("*") if each.is_file()), key=lambda each: (each.name in LAST_WRITTEN, each)
        )
        names = {f"{name}/{each.relative_to(path).as_posix()}": each for each in files}
        if not files or all(self._sent.get(each) == _signature(file) for each, file in names.items()):
            return
        parent, _, last = name.rpartition("/")
        arriving = f"{parent}/{ARRIVING}{last}" if parent else f"{ARRIVING}{last}"
        for each, file in names.items():
            self._sent.pop(each, None)
            self._put(file, each, f"{arriving}{each.removeprefix(name)}")
        self._depot.move(arriving, name)


def _is_kept(name: str) -> bool:
    return any(fnmatch(name.rpartition("/")[2], pattern) for pattern in KEPT)


def _signature(path: Path) -> Signature:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _digest(file: IO[bytes], size: int) -> str:
    hashed = hashlib.sha256()
    while size and (part := file.read(min(size, PART_BYTES))):
        hashed.update(part)
        size -= len(part)
    return hashed.hexdigest()
