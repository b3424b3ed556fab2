"""The SQL of keys."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, and_, col, or_, select, update

from app.db.tables import ApiKey
from app.kit.problems import NotFound


def key_of(db: Session, key_id: str) -> ApiKey:
    key = db.get(ApiKey, key_id)
    if key is None:
        raise NotFound(f"There is no key {key_id!r}.")
    return key


def newest_keys(db: Session, limit: int, after: tuple[datetime, str] | None = None) -> Sequence[ApiKey]:
    """Of every owner, newest first, one more than `limit`, beginning below `after` (created_at, id)."""
    query = select(ApiKey)
    if after:
        at, key = after
        query = query.where(or_(col(ApiKey.created_at) < at, and_(col(ApiKey.created_at) == at, col(ApiKey.id) < key)))
    return db.exec(query.order_by(col(ApiKey.created_at).desc(), col(ApiKey.id).desc()).limit(limit + 1)).all()


def note_use(db: Session, key_id: str, at: datetime) -> None:
    """Nothing where the key was revoked meanwhile."""
    db.exec(update(ApiKey).where(col(ApiKey.id) == key_id).values(last_used_at=at))
