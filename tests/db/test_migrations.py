"""The schema's history: every step up and down, no drift from the tables, and nothing lost on the way."""

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

import migrations
from app.db import migrate, tables
from app.db.engine import writing_engine
from app.db.migrate import DatabaseTooNew, DatabaseUnusable
from app.kit.clock import now
from tests.desk import Desk

SCRIPTS = ScriptDirectory.from_config(migrate.alembic_config())
REVISIONS = [script.revision for script in SCRIPTS.walk_revisions()][::-1]


@pytest.fixture
def engine(tmp_path):
    engine = writing_engine(tmp_path / "tidemill.db")
    yield engine
    engine.dispose()


def schema(engine) -> dict[str, str]:
    """What SQLite itself says the schema is, without the freedom of quotes, spaces and order in a table's clauses."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").all()
    return {name: normalised(sql) for name, sql in rows if name != "alembic_version"}


def normalised(sql: str) -> str:
    head, _, rest = re.sub(r"\s+", " ", sql.replace('"', "")).partition("(")
    body, _, tail = rest.rpartition(")")
    clauses = re.split(r", (?![^()]*\))", body.strip())
    return f"{head.strip()} ({', '.join(sorted(clause.strip() for clause in clauses))}) {tail.strip()}"


def alembic(engine, what, revision):
    with engine.connect() as connection:
        what(migrate.alembic_config(connection), revision)
        connection.commit()


def revision_of(engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def test_there_is_one_line_of_history():
    assert len(SCRIPTS.get_heads()) == 1
    assert len(SCRIPTS.get_bases()) == 1


def test_each_revision_goes_up_down_and_up_again(engine):
    seen = {}
    for revision in REVISIONS:
        alembic(engine, command.upgrade, revision)
        seen[revision] = schema(engine)
    for revision in REVISIONS[::-1]:
        assert schema(engine) == seen[revision]
        alembic(engine, command.downgrade, "-1")
    assert schema(engine) == {}
    alembic(engine, command.upgrade, "head")
    assert schema(engine) == seen[REVISIONS[-1]]


def test_a_migrated_database_is_the_one_the_tables_describe(engine, tmp_path):
    migrate.upgrade(engine, tmp_path / "tidemill.db")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, tables.metadata) == []
    described = writing_engine(tmp_path / "described.db")
    tables.metadata.create_all(described)
    assert schema(engine) == schema(described)
    assert any("CHECK" in sql for sql in schema(engine).values())


def test_upgrading_a_database_that_is_up_to_date_changes_nothing(engine, tmp_path):
    for _ in range(2):
        migrate.upgrade(engine, tmp_path / "tidemill.db")
    assert revision_of(engine) == REVISIONS[-1]


# ---- what the database itself refuses ------------------------------------------------------------------------------


def job(**fields):
    empty = {"progress": {}, "params": {}, "execution": {}, "plan": {}, "labels": {}}
    return tables.Job(
        **{"id": "j", "owner": "me", "kind": "k", "state": "queued", "created_at": now()} | empty | fields
    )


def attempt(**fields):
    known = {"id": "a", "job_id": "j", "number": 1, "worker_id": "w", "state": "placed", "placed_at": now()}
    return tables.Attempt(**known | fields)


def lease(amount):
    return tables.Lease(attempt_id="a", worker_id="w", resource="CPU", amount=amount)


def worker(state):
    return tables.WorkerRow(
        id="w", engine="dask", address="a", state=state, joined_at=now(), resources={}, facts={}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "constraint"),
    [
        ([job(state="paused")], "ck_job_state"),
        ([job(state="succeeded")], "ck_job_finished"),
        ([job(state="running", finished_at=now())], "ck_job_finished"),
        ([job(priority=101)], "ck_job_priority"),
        ([job(priority=-101)], "ck_job_priority"),
        ([worker("asleep")], "ck_worker_state"),
        ([job(), attempt(state="lost")], "ck_attempt_state"),
        ([job(), attempt(state="placed", claim="nonce")], "ck_attempt_claim"),
        ([job(), attempt(), attempt(id="b")], "attempt.job_id, attempt.number"),
        ([job(), attempt(), lease(0)], "ck_lease_amount"),
        ([attempt()], "FOREIGN KEY"),
    ],
)
def test_the_database_refuses_what_must_not_be(desk, rows, constraint):
    def unit(db):
        for row in rows:
            db.add(row.model_copy())
            db.flush()

    with pytest.raises(IntegrityError, match=re.escape(constraint)):
        desk.write(unit)


@pytest.mark.parametrize("row", [job(priority=100), job(priority=-100), job(state="failed", finished_at=now())])
def test_and_takes_what_may_be(desk, row):
    desk.write(lambda db: db.add(row.model_copy()))


def test_a_job_that_goes_takes_all_of_it_along(desk):
    def unit(db):
        for row in (
            job(), attempt(), lease(1), tables.JobLabel(job_id="j", name="n", value="v"),
            tables.JobDataset(job_id="j", dataset_id="d"), tables.Event(job_id="j", seq=1, at=now(), type="log", data={}),
            tables.ArtifactRow(job_id="j", name="n", path="p", bytes=1, sha256="", media_type="", created_at=now()),
        ):  # fmt: skip
            db.add(row)
            db.flush()

    desk.write(unit)
    filled = [name for (name,) in desk.look("SELECT name FROM sqlite_master WHERE type = 'table'")]
    desk.write(lambda db: db.delete(db.get_one(tables.Job, "j")))
    left = {name for name in filled if desk.look(f"SELECT count(*) FROM {name}") != [(0,)]}
    assert left == {"alembic_version"}


# ---- tomorrow's migrations ----------------------------------------------------------------------------------------

NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "next", "{head}", None, None

def upgrade():
    with op.batch_alter_table("job", recreate="always") as batch:
        batch.add_column(sa.Column("mood", sa.String()))
    {then}

def downgrade():
    op.drop_column("job", "mood")
"""


@pytest.fixture
def one_more(tmp_path, monkeypatch):
    """A history that is one revision longer: it rebuilds the job table, and then does `then`."""

    def write(then: str = "") -> None:
        scripts = tmp_path / "migrations"
        shutil.copytree(Path(migrations.__file__).parent, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        (scripts / "versions" / "next.py").write_text(NEXT.format(head=REVISIONS[-1], then=then))
        monkeypatch.setattr(migrations, "__file__", str(scripts / "__init__.py"))

    return write


@pytest.fixture
def filled(tmp_path) -> Path:
    """A database of today with a job and its log."""
    desk = Desk(tmp_path / "home")
    desk.write(lambda db: (db.add(job()), db.flush()))
    desk.write(lambda db: db.add(tables.Event(job_id="j", seq=1, at=now(), type="log", data={})))
    desk.close()
    return desk.files.database


def test_a_migration_that_rebuilds_a_table_keeps_the_rows_that_refer_to_it(filled, one_more):
    one_more()
    migrate.upgrade(writing_engine(filled), filled)
    with sqlite3.connect(filled) as db:
        assert db.execute("SELECT id, mood FROM job").fetchall() == [("j", None)]
        assert db.execute("SELECT job_id, seq FROM event").fetchall() == [("j", 1)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(filled, one_more):
    engine = writing_engine(filled)
    before = schema(engine)
    one_more("raise RuntimeError('half way')")
    with pytest.raises(RuntimeError, match="half way"):
        migrate.upgrade(engine, filled)
    assert schema(engine) == before
    assert revision_of(engine) == REVISIONS[-1]


def test_a_database_of_a_newer_version_is_refused_and_untouched(filled):
    with sqlite3.connect(filled) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.close()
    with pytest.raises(DatabaseTooNew) as caught:
        migrate.upgrade(writing_engine(filled), filled)
    assert str(filled) in str(caught.value)
    assert "'9999'" in str(caught.value)
    assert f"'{REVISIONS[-1]}'" in str(caught.value)
    assert revision_of(writing_engine(filled)) == "9999"


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "tidemill.db"
    path.write_bytes(b"not a database, but long enough to have a header" * 100)
    with pytest.raises(
        DatabaseUnusable, match=r"tidemill\.db cannot be opened as a database \(file is not a database\)"
    ):
        migrate.upgrade(writing_engine(path), path)
