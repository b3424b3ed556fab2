"""Idempotency keys in the transaction of what they guard: the answer is remembered exactly when the thing exists."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import Response
from sqlmodel import Session, col, delete

from app.db.tables import IdempotencyRow
from app.db.writer import Writer
from app.kit.clock import now
from app.kit.idempotency import StoredAnswer, replay
from app.kit.problems import IdempotencyKeyReused, RequestInFlight

KEPT = timedelta(days=7)
LONGEST_REQUEST = timedelta(hours=1)
"""What says it is running for longer has died without a word."""


@dataclass(frozen=True)
class Keyed:
    """One keyed request: whose, to which address, under which key, asking what. `fingerprint` is None while still unknown."""

    owner: str
    scope: str
    key: str
    fingerprint: str | None = None


def earlier(db: Session, keyed: Keyed) -> StoredAnswer | None:
    """The first answer under this key. Raises IdempotencyKeyReused for another request, RequestInFlight for a running one."""
    row = db.get(IdempotencyRow, (keyed.owner, keyed.scope, keyed.key))
    if row is None:
        return None
    if row.status is None and now() - row.created_at < LONGEST_REQUEST:
        raise RequestInFlight
    if row.status is None:
        return None  # a request that could not even say that it had failed
    if keyed.fingerprint is None:
        return None
    if row.fingerprint != keyed.fingerprint:
        raise IdempotencyKeyReused(f"The key {keyed.key!r} came first with another request; take a fresh one for this.")
    return StoredAnswer.model_validate_json(row.body)


def remember(db: Session, keyed: Keyed, answer: StoredAnswer | None) -> None:
    """Keep the answer, or, with None, that the request is running."""
    db.merge(
        IdempotencyRow(
            owner=keyed.owner,
            scope=keyed.scope,
            key=keyed.key,
            fingerprint=keyed.fingerprint or "",
            status=answer.status if answer else None,
            body=answer.model_dump_json() if answer else "",
            created_at=now(),
        )
    )


def forget(db: Session, keyed: Keyed) -> None:
    """Give a key back whose request failed before it made anything."""
    row = db.get(IdempotencyRow, (keyed.owner, keyed.scope, keyed.key))
    if row is not None and row.status is None:
        db.delete(row)


def forget_old(db: Session, before: datetime) -> None:
    db.exec(delete(IdempotencyRow).where(col(IdempotencyRow.created_at) < before))


def forget_running(db: Session) -> None:
    """At start-up: no request of an earlier process is running any more."""
    db.exec(delete(IdempotencyRow).where(col(IdempotencyRow.status).is_(None)))


async def create_once(writer: Writer, keyed: Keyed | None, make: Callable[[Session], Response]) -> Response:
    """Run `make` in one write unit, or give the first answer again."""
    if keyed is None:
        return await writer.run(make)

    def unit(db: Session) -> Response:
        if answer := earlier(db, keyed):
            return replay(answer)
        response = make(db)
        remember(db, keyed, StoredAnswer.of(response))
        return response

    return await writer.run(unit)


async def reserve(writer: Writer, keyed: Keyed | None) -> None:
    """Mark the key of an upload as in flight; one that was answered before is settled when the file's hash is known."""
    if keyed is None:
        return

    def unit(db: Session) -> None:
        row_is_there = known(db, keyed)
        earlier(db, keyed)
        if not row_is_there:
            remember(db, keyed, None)

    await writer.run(unit)


async def give_back(writer: Writer, keyed: Keyed | None) -> None:
    """The upload failed before it made anything: its key is free again."""
    if keyed:
        await writer.run(lambda db: forget(db, keyed))


def known(db: Session, keyed: Keyed) -> bool:
    return db.get(IdempotencyRow, (keyed.owner, keyed.scope, keyed.key)) is not None


def answered(db: Session, keyed: Keyed) -> StoredAnswer | None:
    """As `earlier`, asked by the running request itself: its own mark is no answer."""
    row = db.get(IdempotencyRow, (keyed.owner, keyed.scope, keyed.key))
    return earlier(db, keyed) if row is not None and row.status is not None else None
