"""Connections to the one SQLite file: a single one that writes, and read-only ones for everything else."""

import sqlite3
from pathlib import Path
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


def writing_engine(path: Path) -> Engine:
    """The engine of the one writing connection. `synchronous=FULL`: what is committed survives a power cut."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"check_same_thread": False}
    )
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
