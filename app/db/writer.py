"""The one writer: a thread with the one writing connection, which commits the units of a moment together (decision 2).

A unit is a function of a session. It runs in a savepoint of its own, so one that raises takes nothing with it; when `run`
returns, its work is on the disk.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlmodel import Session

from app.kit.problems import Unavailable

T = TypeVar("T")
log = logging.getLogger(__name__)

MAX_GROUP = 256
"""Units committed together at most: enough for one fsync to serve a burst, few enough that nobody waits long."""


class StorageUnavailable(Unavailable):
    """The database could not be written: the disk is full, or another program holds the file, or it is damaged.

    Nothing of the request was kept. The detail says which; mend that under the server's home folder and send it again.
    """

    title = "Storage unavailable"


@dataclass
class _Unit:
    work: Callable[[Session], Any]
    done: Future[Any] = field(default_factory=Future)
    value: Any = None
    topics: set[str] = field(default_factory=set)


def touch(db: Session, topic: str) -> None:
    """Tell whoever waits for `topic` once this unit is committed, and not before."""
    topics: set[str] = db.info.setdefault("topics", set())
    topics.add(topic)


class Writer:
    """Runs units one after the other and commits them in groups. Start it once, `close` it last."""

    def __init__(self, engine: Engine, committed: Callable[[set[str]], None] = lambda topics: None) -> None:
        self._engine = engine
        self._committed = committed
        self._queue: SimpleQueue[_Unit | None] = SimpleQueue()
        self._closed = False
        self._door = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="tidemill-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, unit: Callable[[Session], T]) -> Future[T]:
        """Queue a unit; the future resolves after its commit, and cannot be cancelled."""
        job = _Unit(unit)
        job.done.set_running_or_notify_cancel()
        with self._door:
            if self._closed:
                raise Unavailable(
                    "The server is stopping and takes no more writes; send the request again in a moment."
                )
            self._queue.put(job)
        return job.done

    async def run(self, unit: Callable[[Session], T]) -> T:
        """Run `unit` and return its value after the commit.

        A caller that is cancelled meanwhile does not take the unit back: it commits or fails as a whole.
        """
        return await asyncio.wrap_future(self.submit(unit))

    def close(self) -> None:
        """Commit what is queued, fold the write-ahead log into the database and end."""
        with self._door:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    # ---- the thread --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        with self._engine.connect() as connection:
            last = False
            while not last:
                group, last = self._next_group()
                if group:
                    self._commit(connection, group)
            _driver(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _next_group(self) -> tuple[list[_Unit], bool]:
        group: list[_Unit] = []
        while not group or (len(group) < MAX_GROUP and not self._queue.empty()):
            unit = self._queue.get()
            if unit is None:
                return group, True
            group.append(unit)
        return group, False

    def _commit(self, connection: Connection, group: list[_Unit]) -> None:
        """One transaction for the group. A storage that fails may end it behind our back: then every unit of the group fails,
        since a later one would otherwise commit alone."""
        try:
            with connection.begin():
                survivors = [unit for unit in group if self._attempt(connection, unit)]
        except Exception as fault:
            log.error("a group of %d writes failed: %s", len(group), fault)
            failure = fault if isinstance(fault, StorageUnavailable) else unwritable(fault)
            for unit in group:
                if not unit.done.done():
                    unit.done.set_exception(failure)
            return
        for unit in survivors:
            unit.done.set_result(unit.value)
        self._tell(set[str]().union(*(unit.topics for unit in survivors)))

    def _attempt(self, connection: Connection, unit: _Unit) -> bool:
        """Run one unit in its savepoint; False where it refused. Raises StorageUnavailable where that is not the unit's fault."""
        try:
            with Session(connection, join_transaction_mode="create_savepoint", expire_on_commit=False) as session:
                unit.value = unit.work(session)
                session.commit()
                unit.topics = session.info.get("topics", set())
        except Exception as refusal:
            if _storage_failed(connection, refusal):
                raise unwritable(refusal) from refusal
            unit.done.set_exception(refusal)
            return False
        return True

    def _tell(self, topics: set[str]) -> None:
        """Say what changed. Whoever listens cannot stop the one thread that writes."""
        try:
            if topics:
                self._committed(topics)
        except Exception:
            log.exception("a commit could not be announced")


def unwritable(fault: Exception) -> StorageUnavailable:
    """The problem for people, in SQLite's own few words: full, locked, read-only, damaged."""
    return StorageUnavailable(f"The database could not be written ({getattr(fault, 'orig', fault)}).")


def _storage_failed(connection: Connection, fault: Exception) -> bool:
    """Whether it was the disk or the memory, and not the unit. SQLite then rolls back the statement or all of the transaction."""
    code = getattr(getattr(fault, "orig", fault), "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
    return (
        code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
        or not _driver(connection).in_transaction
    )


def _driver(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw
