"""Bringing a database up to this code, and refusing one that is ahead of it."""

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError

import migrations


class DatabaseUnusable(RuntimeError):
    """The database cannot be opened: it is no SQLite file, is damaged, or may not be written."""


class DatabaseTooNew(DatabaseUnusable):
    """The database was written by a newer Tidemill. Start that version, or restore a backup made by this one."""


def alembic_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine, path: Path) -> None:
    """Migrate to the newest schema this code knows, each revision in one transaction.

    Raises DatabaseTooNew, naming the file and the revision, when the database's revision is unknown here, and DatabaseUnusable.
    """
    try:
        with engine.connect() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
    except (DatabaseError, sqlite3.DatabaseError) as fault:
        raise DatabaseUnusable(f"{path} cannot be opened as a database ({getattr(fault, 'orig', fault)}).") from fault
    scripts = ScriptDirectory.from_config(alembic_config())
    known = {script.revision for script in scripts.walk_revisions()}
    if current is not None and current not in known:
        raise DatabaseTooNew(
            f"{path} is at schema {current!r}, which this Tidemill does not know: a newer version wrote it. "
            f"Start that version, or restore a backup from before (this one knows up to {scripts.get_current_head()!r})."
        )
    with engine.connect() as connection:
        # Rebuilding a table drops the old one, and with foreign keys on that deletes every row that refers to it.
        connection.connection.execute("PRAGMA foreign_keys=OFF")
        command.upgrade(alembic_config(connection), "head")
        connection.commit()
