"""The SQL of jobs and their event log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, and_, col, func, or_, select

from app.db.tables import ArtifactRow, Attempt, Event, Job, JobLabel
from app.db.writer import touch
from app.jobs import states
from app.jobs.states import FINAL, Facts, Refusal, State
from app.kit.clock import now
from app.kit.problems import NotFound

QUEUE_TOPIC = "queue"
STOP_TOPIC = "stop"
"""Some attempt that runs must not go on."""


def job_topic(job_id: str) -> str:
    return f"job:{job_id}"


class TransitionRefused(Exception):
    """An event came that the job's state does not take; what follows from it must not be written."""


def job_of(db: Session, job_id: str, owner: str) -> Job:
    job = db.get(Job, job_id)
    if job is None or job.owner != owner:
        raise NotFound(f"There is no job {job_id!r}.")
    return job


def ids(db: Session) -> set[str]:
    return set(db.exec(select(Job.id)).all())


def state_of(db: Session, job_id: str, owner: str | None = None) -> State:
    """A job's state, without its parameters, which may hold a hundred thousand values; of whoever's job without `owner`."""
    query = select(Job.state, Job.owner).where(Job.id == job_id)
    row = db.exec(query).first()
    if row is None or owner not in (None, row[1]):
        raise NotFound(f"There is no job {job_id!r}.")
    return State(row[0])


def kind_of(db: Session, job_id: str) -> str:
    """The kind of a job that is there, likewise without its parameters."""
    return db.exec(select(Job.kind).where(Job.id == job_id)).one()


def jobs_that_need(db: Session, job_id: str) -> Sequence[str]:
    """Ids of the jobs that have not ended and begin with a checkpoint of this one: by its name, or as its retry."""
    named = func.json_extract(col(Job.params), "$.config.ckpt_path.job")
    goes_on = or_(Job.kind == "training", func.json_extract(col(Job.plan), "$.implementation") == "tiles")
    unfinished = select(Job.id).where(col(Job.state).not_in(FINAL), goes_on)
    return db.exec(unfinished.where(or_(named == job_id, Job.retry_of == job_id))).all()


def append_event(db: Session, job: Job, kind: str, data: dict[str, Any], at: datetime | None = None) -> None:
    """Write the next entry of the job's log, and tell who follows it."""
    job.last_seq += 1
    job.version += 1
    db.add(job)
    db.add(Event(job_id=job.id, seq=job.last_seq, at=at or now(), type=kind, data=data))
    touch(db, job_topic(job.id))


def apply(db: Session, job: Job, event: states.Event, *, error: dict[str, Any] | None = None, **about: Any) -> State:
    """Change the job's state through the state machine, the only way there is. Raises TransitionRefused.

    `about` goes into the log entry of the change.
    """
    if event is states.Event.WORKER_LOST:
        job.attempts_counted += 1
    before = State(job.state)
    after = states.step(before, event, Facts(job.attempts_counted, job.max_attempts))
    if isinstance(after, Refusal):
        raise TransitionRefused(str(after))
    if after is before:
        return after
    job.state = after
    job.phase = {State.QUEUED: "waiting_for_worker", State.CANCELLING: "cancelling"}.get(after, job.phase)
    if after in FINAL:
        job.phase, job.finished_at = None, now()
        job.progress = {**job.progress, "eta_seconds": None}
        job.error = error if after is State.FAILED else None
    if before is State.RUNNING and after is not State.SUCCEEDED:
        touch(db, STOP_TOPIC)
    append_event(db, job, "state", {"from": before, "to": after, "event": event, **about})
    touch(db, QUEUE_TOPIC)
    return after


@dataclass(frozen=True)
class JobFilter:
    """What `GET /jobs` can select by."""

    states: Sequence[State] = ()
    kinds: Sequence[str] = ()
    labels: Sequence[tuple[str, str]] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None


def newest_jobs(
    db: Session, owner: str, wanted: JobFilter, limit: int, after: tuple[datetime, str] | None
) -> Sequence[Job]:
    """Newest first, one more than `limit`, beginning below `after` (created_at, id)."""
    query = select(Job).where(Job.owner == owner)
    if wanted.states:
        query = query.where(col(Job.state).in_(wanted.states))
    if wanted.kinds:
        query = query.where(col(Job.kind).in_(wanted.kinds))
    for name, value in wanted.labels:
        labelled = select(JobLabel.job_id).where(JobLabel.name == name, JobLabel.value == value)
        query = query.where(col(Job.id).in_(labelled))
    if wanted.created_after:
        query = query.where(Job.created_at > wanted.created_after)
    if wanted.created_before:
        query = query.where(Job.created_at < wanted.created_before)
    if after:
        at, job_id = after
        query = query.where(or_(col(Job.created_at) < at, and_(col(Job.created_at) == at, col(Job.id) < job_id)))
    return db.exec(query.order_by(col(Job.created_at).desc(), col(Job.id).desc()).limit(limit + 1)).all()


def events_after(db: Session, job_id: str, seq: int, limit: int) -> Sequence[Event]:
    query = select(Event).where(Event.job_id == job_id, Event.seq > seq)
    return db.exec(query.order_by(col(Event.seq)).limit(limit)).all()


def waiting(db: Session) -> int:
    return db.exec(select(func.count()).select_from(Job).where(Job.state == State.QUEUED)).one()


def ahead_of(db: Session, job: Job) -> int:
    """How many queued jobs the dispatcher looks at before this one."""
    first = or_(
        col(Job.priority) > job.priority,
        and_(col(Job.priority) == job.priority, col(Job.created_at) < job.created_at),
        and_(col(Job.priority) == job.priority, col(Job.created_at) == job.created_at, col(Job.id) < job.id),
    )
    return db.exec(select(func.count()).select_from(Job).where(Job.state == State.QUEUED, first)).one()


def attempts_of(db: Session, job_id: str) -> Sequence[Attempt]:
    return db.exec(select(Attempt).where(Attempt.job_id == job_id).order_by(col(Attempt.number))).all()


def open_attempt(db: Session, job_id: str) -> Attempt | None:
    """The attempt that still holds a place on a worker."""
    return db.exec(select(Attempt).where(Attempt.job_id == job_id, Attempt.state != "ended")).first()


def artifacts_of(db: Session, job_id: str) -> Sequence[ArtifactRow]:
    return db.exec(select(ArtifactRow).where(ArtifactRow.job_id == job_id).order_by(col(ArtifactRow.name))).all()
