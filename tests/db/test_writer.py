"""The one writer: what it promises when all goes well, when a unit fails, and when the disk is full."""

import asyncio
import contextlib
import sqlite3
import threading
from concurrent.futures import Future

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.db import idempotency
from app.db.idempotency import Keyed
from app.db.writer import MAX_GROUP, StorageUnavailable, touch
from app.kit.idempotency import StoredAnswer
from app.kit.problems import Unavailable
from tests.desk import Desk


def note(key, size=0):
    """A unit that leaves one row, and returns its key."""

    def unit(db):
        idempotency.remember(db, Keyed("me", "POST /x", key), StoredAnswer(status=200, headers={}, body=b"x" * size))
        touch(db, f"noted:{key}")
        return key

    return unit


def refusal(db):
    note("refused")(db)
    db.flush()
    raise LookupError("this unit changed its mind")


@contextlib.contextmanager
def held_up(desk: Desk):
    """What is submitted in this block goes into the writer's next group, all together."""
    began, goes_on = threading.Event(), threading.Event()

    def gate(db):
        began.set()
        assert goes_on.wait(10)

    passed = desk.writer.submit(gate)
    assert began.wait(10)
    try:
        yield
    finally:
        goes_on.set()
        passed.result(10)


def together(desk: Desk, *units) -> list[Future]:
    """Submit units as one group and wait until all have ended, however."""
    with held_up(desk):
        futures = [desk.writer.submit(unit) for unit in units]
    for future in futures:
        future.exception(30)
    return futures


def keys(desk: Desk) -> list[str]:
    return [key for (key,) in desk.look("SELECT key FROM idempotency ORDER BY key")]


def commits(desk: Desk) -> int:
    return desk.statements.count("COMMIT") + desk.statements.count("COMMIT ")


def test_what_run_returned_is_in_the_file(desk):
    async def story():
        for key in ("a", "b", "c"):
            assert await desk.writer.run(note(key)) == key
            assert key in keys(desk)

    asyncio.run(story())


def test_a_unit_that_raises_takes_nothing_with_it_and_nobody_along(desk):
    before, refused, after = together(desk, note("before"), refusal, note("after"))
    assert (before.result(), after.result()) == ("before", "after")
    with pytest.raises(LookupError, match="changed its mind"):
        refused.result()
    assert keys(desk) == ["after", "before"]


def test_a_burst_shares_its_commits(desk):
    with held_up(desk):
        burst = [desk.writer.submit(note(f"{i:04}")) for i in range(2000)]
        already = commits(desk)
    assert [future.result(30) for future in burst] == [f"{i:04}" for i in range(2000)]
    assert 1 < commits(desk) - already <= 2 + 2000 // MAX_GROUP
    assert len(keys(desk)) == 2000


def test_units_run_in_the_order_they_came(desk):
    order: list[int] = []
    together(desk, *[lambda db, i=i: order.append(i) for i in range(50)])
    assert order == list(range(50))


def test_topics_are_announced_once_the_commit_is_durable_and_not_for_what_was_refused(desk):
    seen = []
    desk.on_commit = lambda topics: seen.append((topics, keys(desk)))
    together(desk, note("a"), refusal, note("b"))
    desk.write(lambda db: None)
    assert seen == [({"noted:a", "noted:b"}, ["a", "b"])]


def test_a_listener_that_fails_does_not_stop_the_writing(desk):
    def fails(topics):
        raise RuntimeError("Event loop is closed")

    desk.on_commit = fails
    assert desk.write(note("a")) == "a"
    assert desk.write(note("b")) == "b"


def fill_by_insert(db):
    note("big", size=4_000_000)(db)


def fill_by_update(db):
    """An UPDATE of many rows: here SQLite takes back the statement alone, and would let the rest of the group commit."""
    db.exec(text("UPDATE idempotency SET body = hex(zeroblob(200000))"))


def fill_and_look_away(db):
    with contextlib.suppress(OperationalError):
        note("big", size=4_000_000)(db)
        db.flush()


@pytest.mark.parametrize("fill", [fill_by_insert, fill_by_update, fill_and_look_away])
def test_a_full_disk_fails_the_whole_group_and_the_writer_lives_on(desk, fill):
    together(desk, *[note(f"old{i}") for i in range(9)])
    kept = keys(desk)
    (pages,) = desk.look("PRAGMA page_count")[0]
    desk.write(lambda db: db.exec(text(f"PRAGMA max_page_count = {pages + 4}")).all())
    announced = len(desk.announced)

    first, filling, last = together(desk, note("first"), fill, note("last"))
    for future in (first, filling, last):
        with pytest.raises(StorageUnavailable) as caught:
            future.result()
        assert caught.value.status == 503
        assert int(caught.value.headers["Retry-After"]) > 0
    assert keys(desk) == kept
    assert desk.look("SELECT max(length(body)) FROM idempotency")[0][0] < 1000
    assert len(desk.announced) == announced

    assert desk.write(note("small")) == "small"
    desk.write(lambda db: db.exec(text("PRAGMA max_page_count = 1000000")).all())
    desk.write(fill_by_insert)
    assert keys(desk) == sorted([*kept, "small", "big"])


def test_every_transaction_begins_immediate(desk):
    desk.write(note("a"))
    begins = [statement for statement in desk.statements if statement.startswith("BEGIN")]
    assert begins
    assert set(begins) == {"BEGIN IMMEDIATE"}


def test_a_write_lock_held_elsewhere_is_answered_503_and_passes(desk):
    desk.write(lambda db: db.exec(text("PRAGMA busy_timeout = 50")).all())
    other = sqlite3.connect(desk.files.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable):
        desk.write(note("a"))
    other.execute("ROLLBACK")
    other.close()
    assert desk.write(note("b")) == "b"
    assert keys(desk) == ["b"]


def test_what_is_committed_survives_a_power_cut(desk):
    asked = ("journal_mode", "synchronous", "foreign_keys")
    found = desk.write(lambda db: {name: db.exec(text(f"PRAGMA {name}")).one()[0] for name in asked})
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}  # 2 is FULL


def test_readers_cannot_write(desk):
    with pytest.raises(OperationalError, match="readonly"):
        desk.read(lambda db: (note("a")(db), db.flush()))
    with pytest.raises(OperationalError, match="readonly"):
        desk.read(lambda db: (db.exec(text("PRAGMA query_only = OFF")), note("a")(db), db.flush()))


def test_a_reader_sees_one_moment(desk):
    def twice(db):
        count = text("SELECT count(*) FROM idempotency")
        first = db.exec(count).one()
        desk.write(note("meanwhile"))
        return first, db.exec(count).one()

    first, second = desk.read(twice)
    assert first == second == (0,)
    assert keys(desk) == ["meanwhile"]


def test_closing_commits_what_is_queued_and_then_refuses(tmp_path):
    desk = Desk(tmp_path / "home")
    with held_up(desk):
        queued = [desk.writer.submit(note(f"{i}")) for i in range(5)]
        closing = threading.Thread(target=desk.writer.close)
        closing.start()
    closing.join(10)
    assert [future.result(0) for future in queued] == list("01234")
    assert keys(desk) == list("01234")
    with pytest.raises(Unavailable, match="stopping"):
        desk.writer.submit(note("late"))
    desk.reading.dispose()


def test_no_unit_is_forgotten_by_a_close_that_comes_at_the_same_time(tmp_path):
    desk = Desk(tmp_path / "home")
    futures: list[Future] = []

    def keep_writing():
        with contextlib.suppress(Unavailable):
            for _ in range(100):
                futures.append(desk.writer.submit(lambda db: None))

    threads = [threading.Thread(target=keep_writing) for _ in range(4)]
    for thread in threads:
        thread.start()
    desk.close()
    for thread in threads:
        thread.join(10)
    assert all(future.done() for future in futures)


def test_a_closed_database_is_one_file(tmp_path):
    desk = Desk(tmp_path / "home")
    desk.write(note("a"))
    desk.close()
    assert [file.name for file in desk.home.glob("tidemill.db*") if file.stat().st_size] == ["tidemill.db"]


def test_a_caller_that_is_cancelled_does_not_lose_its_unit(desk):
    async def story():
        with held_up(desk):
            caller = asyncio.create_task(desk.writer.run(note("a")))
            await asyncio.sleep(0)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

    asyncio.run(story())
    assert desk.write(note("b")) == "b"
    assert keys(desk) == ["a", "b"]


def test_a_queued_unit_cannot_be_cancelled(desk):
    with held_up(desk):
        future = desk.writer.submit(note("a"))
        assert not future.cancel()
    assert future.result(10) == "a"


@pytest.mark.parametrize("name", ["with space", "50%25", "a?mode=memory", "a#b", "ä", "file:x"])
def test_home_may_have_any_name(tmp_path, name):
    desk = Desk(tmp_path / name)
    desk.write(note("a"))
    assert desk.read(lambda db: db.exec(text("SELECT key FROM idempotency")).all()) == [("a",)]
    desk.close()
    assert (tmp_path / name / "tidemill.db").stat().st_size > 0
