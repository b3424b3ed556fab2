"""The SQL of what runs: open attempts, their leases, and what has waited or run for too long."""

from collections.abc import Sequence

from sqlmodel import Session, and_, col, delete, or_, select

from app.db.tables import Attempt, Job, Lease, WorkerRow
from app.jobs.states import State
from app.kit.clock import now


def next_waiting(db: Session) -> Job | None:
    """The job at the head of the queue. One whose time is used up is passed over; the reconciler ends it."""
    has_time = or_(col(Job.timeout_seconds).is_(None), col(Job.seconds_used) < col(Job.timeout_seconds))
    order = (col(Job.priority).desc(), col(Job.created_at), col(Job.id))
    # Only ids are sorted: a queue of large jobs would otherwise be read whole for each placement.
    head = db.exec(select(Job.id).where(Job.state == State.QUEUED, has_time).order_by(*order).limit(1)).first()
    return db.get(Job, head) if head else None


def open_attempts(db: Session, worker_id: str | None = None) -> Sequence[Attempt]:
    """The attempts that have not ended: all of them, or one worker's."""
    query = select(Attempt).where(Attempt.state != "ended")
    return db.exec(query if worker_id is None else query.where(Attempt.worker_id == worker_id)).all()


def workers_with_stops(db: Session) -> Sequence[str]:
    """Addresses of the workers that run an attempt of a job which is not to run."""
    query = (
        select(WorkerRow.address)
        .join(Attempt, col(Attempt.worker_id) == col(WorkerRow.id))
        .join(Job, col(Job.id) == col(Attempt.job_id))
        .where(Attempt.state != "ended", Job.state != State.RUNNING)
        .distinct()
    )
    return db.exec(query).all()


def overdue(db: Session) -> list[str]:
    """Ids of the jobs that have used up their `timeout_seconds`, the running attempt counted."""
    query = (
        select(Job.id, Job.timeout_seconds, Job.seconds_used, Attempt.claimed_at)
        .outerjoin(Attempt, and_(col(Attempt.job_id) == col(Job.id), col(Attempt.state) == "claimed"))
        .where(col(Job.timeout_seconds).is_not(None), col(Job.state).in_((State.QUEUED, State.RUNNING)))
    )
    return [
        job_id
        for job_id, limit, used, claimed_at in db.exec(query).all()
        if limit is not None and used + ((now() - claimed_at).total_seconds() if claimed_at else 0.0) >= limit
    ]


def leases(db: Session, attempt_id: str) -> dict[str, int]:
    """What an attempt holds of its worker."""
    held = db.exec(select(Lease).where(Lease.attempt_id == attempt_id)).all()
    return {lease.resource: lease.amount for lease in held}


def free_leases(db: Session, attempt_id: str) -> None:
    db.exec(delete(Lease).where(col(Lease.attempt_id) == attempt_id))
