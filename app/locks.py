"""Folders that one process has to itself: two servers on one HOME, or on one storage, would destroy each other's files."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from app.settings import Settings
from app.starting import CannotStart

KEYS_PATIENCE_SECONDS: Final = 10.0
"""A `keys` command that holds HOME's lock is done before."""


class Holder(StrEnum):
    """What works on a folder that it has locked."""

    SERVER = "server"
    KEYS = "keys"
    UNKNOWN = "unknown"


WORDS: Final = {
    Holder.SERVER: "another server (pid {pid}) already runs on {folder}; stop it, or choose another {option}.",
    Holder.KEYS: "`python -m app keys` (pid {pid}) works on {folder}; wait for it, or stop it.",
    Holder.UNKNOWN: "another process (pid {pid}) works on {folder}; stop it, or choose another {option}.",
}


class FolderTaken(CannotStart):
    """Another process works on this folder, and wrote into its lock which one it is, unless it has only just come."""

    def __init__(self, said: str, folder: Path, option: str) -> None:
        pid, _, holder = said.strip().partition(" ")
        self.holder = Holder(holder) if holder in set(Holder) else Holder.UNKNOWN
        super().__init__(WORDS[self.holder].format(pid=pid or "unknown", folder=folder, option=option))


@contextlib.contextmanager
def locks_of(settings: Settings) -> Iterator[None]:
    """One server for one HOME, and for one storage: two would clear away each other's files.

    A `keys` command is done in a moment, and waited for. Raises FolderTaken.
    """
    deadline = time.monotonic() + KEYS_PATIENCE_SECONDS
    folders = {settings.home.resolve(): "--home"}
    if settings.storage is not None:
        folders.setdefault(settings.storage.resolve(), "TIDEMILL_STORAGE")
    with contextlib.ExitStack() as stack:
        for folder, option in folders.items():
            while True:
                try:
                    stack.enter_context(lock_home(folder, Holder.SERVER, option))
                    break
                except FolderTaken as taken:
                    if taken.holder is Holder.SERVER or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
        yield


@contextlib.contextmanager
def lock_home(home: Path, holder: Holder = Holder.SERVER, option: str = "--home") -> Iterator[None]:
    """Have a folder to oneself: two servers on it would be two writers of one database. Raises FolderTaken."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = open(home / "lock", "a+", encoding="utf-8")
    except OSError as fault:
        raise CannotStart(f"{home.resolve()} cannot be used ({fault.strerror}); choose another {option}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise FolderTaken(lock.read(), home.resolve(), option) from None
        except OSError as fault:
            raise CannotStart(
                f"{home.resolve()} cannot be locked ({fault.strerror}); choose another {option}, on a file system with locks."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()} {holder}")
        lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)  # who comes next, and has not yet said who it is, is not taken for us
