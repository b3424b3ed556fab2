"""Idempotency keys in the database: the answer is remembered exactly when the thing exists."""

import asyncio
from datetime import timedelta

import pytest
from fastapi import Response
from sqlmodel import select

from app.db import idempotency
from app.db.idempotency import Keyed, create_once
from app.db.tables import WorkerRow
from app.kit.clock import now
from app.kit.idempotency import StoredAnswer
from app.kit.problems import Conflict, IdempotencyKeyReused, RequestInFlight

KEYED = Keyed("me", "POST /things", "k1", "print of a")
ANSWER = StoredAnswer(status=202, headers={"location": "/things/1"}, body=b'{"id": 1}')


def thing(db) -> Response:
    """Make something, as a route would, and answer with it."""
    number = len(things(db)) + 1
    db.add(
        WorkerRow(id=f"thing{number}", engine="", address="", state="up", joined_at=now(), resources={}, facts={})
    )  # fmt: skip
    db.flush()
    return Response(f'{{"id": {number}}}'.encode(), 202, {"Location": f"/things/{number}"})


def things(db):
    return db.exec(select(WorkerRow)).all()


def create(desk, keyed, make=thing) -> Response:
    return asyncio.run(create_once(desk.writer, keyed, make))


def test_the_same_key_and_request_get_the_first_answer_again(desk):
    first, second = create(desk, KEYED), create(desk, KEYED)
    assert (second.status_code, second.body, second.headers["location"]) == (202, b'{"id": 1}', "/things/1")
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert len(desk.read(things)) == 1


def test_twenty_at_once_make_one(desk):
    async def story():
        return await asyncio.gather(*(create_once(desk.writer, KEYED, thing) for _ in range(20)))

    answers = asyncio.run(story())
    assert {answer.body for answer in answers} == {b'{"id": 1}'}
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 19
    assert len(desk.read(things)) == 1


def test_the_same_key_with_another_request_is_refused(desk):
    create(desk, KEYED)
    with pytest.raises(IdempotencyKeyReused, match="'k1'"):
        create(desk, Keyed("me", "POST /things", "k1", "print of b"))
    assert len(desk.read(things)) == 1


@pytest.mark.parametrize(
    "other",
    [Keyed("you", "POST /things", "k1", "print of b"), Keyed("me", "POST /else", "k1", "print of b"),
     Keyed("me", "POST /things", "k2", "print of b"), None],
)  # fmt: skip
def test_a_key_counts_for_its_owner_and_its_address_alone(desk, other):
    create(desk, KEYED)
    assert create(desk, other).body == b'{"id": 2}'


def test_without_a_key_each_request_makes_one(desk):
    assert [create(desk, None).body for _ in range(2)] == [b'{"id": 1}', b'{"id": 2}']


def test_a_running_request_holds_its_key(desk):
    desk.write(lambda db: idempotency.remember(db, KEYED, None))
    for fingerprint in ("print of a", "print of b", None):
        with pytest.raises(RequestInFlight):
            create(desk, Keyed("me", "POST /things", "k1", fingerprint))
    assert desk.read(lambda db: idempotency.answered(db, KEYED)) is None
    desk.write(lambda db: idempotency.remember(db, KEYED, ANSWER))
    assert desk.read(lambda db: idempotency.answered(db, KEYED)) == ANSWER
    assert create(desk, KEYED).body == ANSWER.body


def test_a_make_that_raises_leaves_neither_the_thing_nor_the_key(desk):
    def fails(db):
        thing(db)
        raise Conflict("after all, no")

    with pytest.raises(Conflict):
        create(desk, KEYED, fails)
    assert not desk.read(things)
    assert not desk.read(lambda db: idempotency.known(db, KEYED))
    assert create(desk, KEYED).body == b'{"id": 1}'


def test_the_thing_and_its_key_are_one_transaction(desk):
    create(desk, KEYED)
    at = [i for i, statement in enumerate(desk.statements) if statement.startswith("INSERT INTO")]
    assert len(at) == 2
    assert not any(statement.startswith(("COMMIT", "BEGIN")) for statement in desk.statements[at[0] : at[1]])


def test_a_request_that_failed_gives_its_key_back_but_an_answer_stays(desk):
    desk.write(lambda db: idempotency.remember(db, KEYED, None))
    desk.write(lambda db: idempotency.forget(db, KEYED))
    assert not desk.read(lambda db: idempotency.known(db, KEYED))
    desk.write(lambda db: idempotency.remember(db, KEYED, ANSWER))
    desk.write(lambda db: idempotency.forget(db, KEYED))
    assert desk.read(lambda db: idempotency.earlier(db, KEYED)) == ANSWER


def test_a_restart_frees_the_keys_of_requests_that_were_running(desk):
    desk.write(lambda db: idempotency.remember(db, KEYED, None))
    desk.write(lambda db: idempotency.remember(db, Keyed("me", "POST /things", "k2", "f"), ANSWER))
    desk.write(idempotency.forget_running)
    assert desk.look("SELECT key FROM idempotency") == [("k2",)]


def test_old_answers_are_forgotten(desk):
    create(desk, KEYED)
    desk.write(lambda db: idempotency.forget_old(db, now() - timedelta(seconds=60)))
    assert desk.read(lambda db: idempotency.known(db, KEYED))
    desk.write(lambda db: idempotency.forget_old(db, now() + timedelta(seconds=60)))
    assert not desk.read(lambda db: idempotency.known(db, KEYED))
