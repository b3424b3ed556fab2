"""Puts what an attempt writes back to the server, while it runs: logs as they grow, checkpoints as often as their cost allows."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from workers.contract import below
from workers.link import Refused, ServerAway
from workers.storage.base import Interrupted, Limit
from workers.storage.depot import Depot, persistently
from workers.storage.outgoing import LAST_WRITTEN, PART_BYTES, Signature, is_kept, is_log, prepared, signature_of

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
ARRIVING: Final = ".arriving-"
SHARE: Final = 10.0
"""A checkpoint is sent again once this many times the seconds have passed that sending it took."""


class Courier:
    """Of one attempt's folder on this worker. `deliver` may be called while its thread runs."""

    def __init__(self, depot: Depot, folder: Path) -> None:
        self.folder = folder
        self._depot = depot
        self._sent: dict[str, Signature] = {}
        """Files as the server has them."""
        self._there: set[str] = set()
        """Checkpoints that the server has: files, and folders."""
        self._logged: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._odd: set[str] = set()
        self._limit: Limit = lambda: None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def deliver(self, names: Sequence[str], limit: Limit, say: Callable[[str], None]) -> bool:
        """Logs, checkpoints and the files of these names are there when it returns True. Raises Refused."""
        self._limit = limit  # a transfer that the thread is at heeds it, too
        with self._lock:
            try:
                persistently(lambda: self._send_all(names), limit, say)
            except Interrupted:
                return False
        return True

    def _send_all(self, names: Sequence[str]) -> None:
        self._send_what_is_new(at_once=True)
        for name in names:
            if not is_log(name):
                self._put(self.folder / name, name)
        self._forget()  # only now: until the result is there, a checkpoint is what there is

    # ---- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = LOOK_SECONDS
        while not self._closing.wait(pause):
            try:
                with self._lock:
                    self._send_what_is_new(at_once=False)
                pause = LOOK_SECONDS
            except ServerAway as away:
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                log.info("the server is away (%s); trying again in %.0f s", away, pause)
            except Refused as refusal:
                log.info("the server takes no more files of this attempt: %s", refusal)
                return
            except Interrupted:
                continue
            except Exception:  # moved or deleted at this very moment by the job, for instance
                log.exception("files could not be sent; trying again")

    def _send_what_is_new(self, at_once: bool) -> None:
        for name in sorted(path.name for path in self.folder.glob("*") if is_log(path.name) and path.is_file()):
            self._extend(name)
        kept = dict(self._kept())
        for name, path in kept.items():
            if at_once or time.monotonic() >= self._due.get(name, 0.0):
                started = time.monotonic()
                try:
                    self._put_folder(path, name) if path.is_dir() else self._put(path, name)
                finally:
                    now = time.monotonic()
                    self._due[name] = now + SHARE * (now - started)
        if kept and all(self._is_there(name, path) for name, path in kept.items()):
            self._forget()

    def _is_there(self, name: str, path: Path) -> bool:
        with contextlib.suppress(FileNotFoundError):
            files = files_of(path, name)
            return bool(files) and all(self._sent.get(each) == signature_of(file) for each, file in files.items())
        return False

    def _forget(self) -> None:
        """Checkpoints that the job has no longer go from the server."""
        for name in [each for each in self._there if not (self.folder / each).exists()]:
            self._depot.delete(name)
            self._there.discard(name)
            self._sent = {
                each: was for each, was in self._sent.items() if each != name and not each.startswith(f"{name}/")
            }

    def _kept(self) -> Iterator[tuple[str, Path]]:
        """Checkpoints that are whole, not the files within one that is a folder."""
        for path in sorted(self.folder.rglob("*")):
            parts = path.relative_to(self.folder).parts
            if any(part.startswith(".") for part in parts) or any(is_kept(part) for part in parts[:-1]):
                continue
            if is_kept(path.name) and not path.is_symlink() and self._can_be_named("/".join(parts)):
                yield "/".join(parts), path

    def _can_be_named(self, name: str) -> bool:
        try:
            below(name).encode()
        except ValueError:
            if name not in self._odd:
                log.warning("%r is not sent to the server, where a file cannot have that name", name)
            self._odd.add(name)
            return False
        return True

    # ---- one file ----------------------------------------------------------------------------------------------

    def _extend(self, name: str) -> None:
        moved_back = False
        with (self.folder / name).open("rb") as file:
            offset = self._logged.get(name, 0)
            file.seek(offset)
            while part := file.read(PART_BYTES):
                here = self._depot.extend(name, offset, part)
                if here == offset or (here < offset and moved_back):
                    raise ServerAway(f"{name} does not grow on the server")
                moved_back = here < offset  # it lost count: some lines come twice, and none is missing
                self._logged[name] = offset = here
                file.seek(offset)

    def _put(self, path: Path, name: str, as_name: str | None = None) -> None:
        """Send a file, unless it was sent as it is now."""
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            parcel = prepared(file, lambda signature: self._sent.get(name) == signature)
            if parcel is not None:
                self._depot.put(as_name or name, parcel, self._check)
                self._sent[name] = parcel.signature
            if is_kept(name):
                self._there.add(name)

    def _check(self) -> None:
        """Called in the middle of a transfer. Raises Interrupted where there is no more time for it."""
        until = self._limit()
        if self._closing.is_set() or (until is not None and time.monotonic() > until):
            raise Interrupted

    def _put_folder(self, path: Path, name: str) -> None:
        """Send a checkpoint of many files. It takes the place of the one before when all of them are there, as they were at first."""
        files = files_of(path, name)
        if not files or self._is_there(name, path):
            return
        before = {each: signature_of(file) for each, file in files.items()}
        parent, _, last = name.rpartition("/")
        arriving = f"{parent}/{ARRIVING}{last}" if parent else f"{ARRIVING}{last}"
        self._depot.delete(arriving)
        for each, file in files.items():
            self._sent.pop(each, None)
            self._put(file, each, f"{arriving}{each.removeprefix(name)}")
        if files_of(path, name).keys() == before.keys() and all(
            self._sent.get(each) == was == signature_of(files[each]) for each, was in before.items()
        ):
            self._depot.move(arriving, name)
            self._there.add(name)
        else:  # replaced meanwhile: what is there is of two checkpoints
            self._depot.delete(arriving)
            for each in files:
                self._sent.pop(each, None)


def files_of(path: Path, name: str) -> Mapping[str, Path]:
    """The files of a checkpoint by their names, those last that say it is whole."""
    if not path.is_dir():
        return {name: path}
    found = [each for each in path.rglob("*") if each.is_file()]
    found.sort(key=lambda each: (each.name in LAST_WRITTEN, each))
    return {f"{name}/{each.relative_to(path).as_posix()}": each for each in found}
