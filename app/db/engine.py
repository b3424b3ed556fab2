"""Connections to the one SQLite file: a single one that writes, and read-only ones for everything else."""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

BUSY_TIMEOUT_MS = 10_000


def _own_transactions(engine: Engine, begin: str, pragmas: tuple[str, ...]) -> Engine:
    """Take BEGIN into our own hands: on Python 3.11 the driver would emit it late, and never IMMEDIATE."""

    def connected(dbapi: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        assert isinstance(dbapi, sqlite3.Connection)
        dbapi.isolation_level = None
        for pragma in pragmas:
            dbapi.execute(f"PRAGMA {pragma}")

    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def keep_private(path: Path) -> None:
    """The database and what SQLite keeps beside it are for their owner alone, whatever the umask. A new `-wal` or `-shm` follows it.

    A file that is there is not opened: closing it again would let go of the locks that this process has on it.
    """
    with contextlib.suppress(OSError):  # SQLite says better what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for each in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
        with contextlib.suppress(OSError):  # not there, or another's
            mode = each.stat().st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                each.chmod(stat.S_IMODE(mode) & 0o700)


def writing_engine(path: Path) -> Engine:
    """The engine of the one writing connection. `synchronous=FULL`: what is committed survives a power cut."""

    def about_to_connect(*_: Any) -> None:
        keep_private(path)

    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"check_same_thread": False}
    )
    event.listen(engine, "do_connect", about_to_connect)
    return _own_transactions(
        engine,
        "BEGIN IMMEDIATE",
        ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_TIMEOUT_MS}"),
    )


def reading_engine(path: Path, connections: int = 8) -> Engine:
    """Read-only connections: they can neither commit nor checkpoint, so one process never has two writers."""
    engine = create_engine(
        URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}),
        pool_size=connections,
        max_overflow=connections,
        connect_args={"check_same_thread": False},
    )
    return _own_transactions(engine, "BEGIN", (f"busy_timeout={BUSY_TIMEOUT_MS}", "query_only=ON"))
