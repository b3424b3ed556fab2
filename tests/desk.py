"""The control plane's inside without its server: a migrated database, the writer and a reader on it."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import event
from sqlmodel import Session

from app.db import migrate
from app.db.engine import reading_engine, writing_engine
from app.db.reader import Reader
from app.db.writer import Writer
from app.files import Files

T = TypeVar("T")


@dataclass
class Desk:
    """One database with its writer. `statements` is what SQLite was really told by the writing connection."""

    home: Path
    statements: list[str] = field(default_factory=list)
    announced: list[set[str]] = field(default_factory=list)
    on_commit: Callable[[set[str]], None] | None = None

    def __post_init__(self) -> None:
        self.files = Files(self.home, self.home)
        self.files.prepare()
        engine = writing_engine(self.files.database)
        migrate.upgrade(engine, self.files.database)
        event.listen(engine, "connect", lambda raw, entry: raw.set_trace_callback(self.statements.append))
        self.writer = Writer(engine, self._committed)
        self.reading = reading_engine(self.files.database)
        self.reader = Reader(self.reading)
        self.writer.start()

    def _committed(self, topics: set[str]) -> None:
        self.announced.append(topics)
        if self.on_commit:
            self.on_commit(topics)

    def write(self, unit: Callable[[Session], T]) -> T:
        """Run one unit, and return once it is committed."""
        return self.writer.submit(unit).result(timeout=30)

    def read(self, query: Callable[[Session], T]) -> T:
        return self.reader.call(query)

    def look(self, sql: str, *arguments: Any) -> list[Any]:
        """Ask the file over a connection of one's own, as another process would."""
        other = sqlite3.connect(f"file:{self.files.database}?mode=ro", uri=True)
        try:
            return other.execute(sql, arguments).fetchall()
        finally:
            other.close()

    def close(self) -> None:
        self.writer.close()
        self.reading.dispose()
