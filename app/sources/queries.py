"""The SQL of sources."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, and_, col, func, or_, select

from app.db.tables import Job, SourceRow
from app.jobs.states import FINAL
from app.kit.problems import NotFound


def source_of(db: Session, source_id: str, owner: str) -> SourceRow:
    source = db.get(SourceRow, source_id)
    if source is None or source.owner != owner:
        raise NotFound(f"There is no source {source_id!r}.")
    return source


def same_content(db: Session, owner: str, sha256: str) -> SourceRow | None:
    return db.exec(select(SourceRow).where(SourceRow.owner == owner, SourceRow.sha256 == sha256)).first()


def newest_sources(db: Session, owner: str, limit: int, after: tuple[datetime, str] | None) -> Sequence[SourceRow]:
    """Newest first, one more than `limit`, beginning below `after` (created_at, id)."""
    query = select(SourceRow).where(SourceRow.owner == owner)
    if after:
        at, key = after
        query = query.where(
            or_(col(SourceRow.created_at) < at, and_(col(SourceRow.created_at) == at, col(SourceRow.id) < key))
        )
    return db.exec(query.order_by(col(SourceRow.created_at).desc(), col(SourceRow.id).desc()).limit(limit + 1)).all()


def jobs_that_need(db: Session, source_id: str) -> int:
    """How many jobs that have not ended import this source."""
    named = func.json_extract(col(Job.params), "$.source")
    query = (
        select(func.count())
        .select_from(Job)
        .where(Job.kind == "training", col(Job.state).not_in(FINAL), named == source_id)
    )
    return db.exec(query).one()


def ids(db: Session) -> set[str]:
    return set(db.exec(select(SourceRow.id)).all())
