"""The tables. Everything Tidemill must remember over a restart is a row here; files hold only what rows point to."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, MetaData, String, UniqueConstraint, event
from sqlmodel import Field, SQLModel

from app.control.demand import Demand
from app.db.types import Json, UtcDateTime
from app.jobs.states import FINAL, State

# Alembic's batch mode can only drop and rename what has a name.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata: MetaData = SQLModel.metadata


def one_of(column: str, values: Any) -> str:
    return f"{column} IN ({', '.join(repr(str(v)) for v in values)})"


def reference(target: str, **options: Any) -> Column[str]:
    return Column(String, ForeignKey(target, ondelete="CASCADE"), nullable=False, **options)


class Dataset(SQLModel, table=True):
    """An uploaded file and what was read in it; the files lie under `HOME/datasets/<id>/`."""

    __table_args__ = (UniqueConstraint("owner", "sha256", "options", name="uq_dataset_content"),)

    id: str = Field(primary_key=True)
    owner: str = Field(index=True)
    name: str
    format: str
    media_type: str
    bytes: int
    sha256: str
    options: str
    rows: int
    columns: list[dict[str, Any]] = Field(sa_column=Column(Json, nullable=False))
    time_column: str | None = None
    first_time: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    last_time: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    reading: dict[str, Any] = Field(default_factory=dict, sa_column=Column(Json, nullable=False))
    notes: list[str] = Field(default_factory=list, sa_column=Column(Json, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))


class Job(SQLModel, table=True):
    """What was asked, how far it is, how it ended. Its state changes only through `app.jobs.states`."""

    __table_args__ = (
        CheckConstraint(one_of("state", State), name="state"),
        CheckConstraint(f"(finished_at IS NOT NULL) = ({one_of('state', sorted(FINAL))})", name="finished"),
        CheckConstraint("priority BETWEEN -100 AND 100", name="priority"),
        Index("ix_job_queue", "state", "priority", "created_at"),
        Index("ix_job_demand", "state", "demand", "priority", "created_at", "id"),
        Index("ix_job_newest", "owner", "created_at", "id"),
    )

    id: str = Field(primary_key=True)
    owner: str
    kind: str
    state: str
    phase: str | None = None
    progress: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    params: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    execution: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    plan: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))
    demand: str = Field(default="", description="What it asks of a worker: `app.control.demand.Demand`, from its plan.")
    labels: dict[str, str] = Field(sa_column=Column(Json, nullable=False))
    priority: int = 0
    timeout_seconds: float | None = None
    seconds_used: float = 0.0
    max_attempts: int = 3
    attempt: int = 0
    attempts_counted: int = 0
    version: int = 0
    last_seq: int = 0
    retry_of: str | None = None
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    finished_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    error: dict[str, Any] | None = Field(default=None, sa_column=Column(Json))
    result: dict[str, Any] | None = Field(default=None, sa_column=Column(Json))
    provenance: dict[str, Any] | None = Field(default=None, sa_column=Column(Json))


@event.listens_for(Job, "before_insert")
def _tell_demand(mapper: Any, connection: Any, job: Job) -> None:
    """Whoever makes a job makes its plan; what the queue looks by follows from it, and cannot be forgotten."""
    job.demand = str(Demand.of(job.kind, job.plan))


class JobLabel(SQLModel, table=True):
    """A job's labels once more, as rows that a filter can find."""

    __tablename__ = "job_label"
    __table_args__ = (Index("ix_job_label_name_value", "name", "value"),)

    job_id: str = Field(sa_column=reference("job.id", primary_key=True))
    name: str = Field(primary_key=True)
    value: str


class JobDataset(SQLModel, table=True):
    """Which datasets a job reads; while it has not ended, they cannot be deleted."""

    __tablename__ = "job_dataset"

    job_id: str = Field(sa_column=reference("job.id", primary_key=True))
    dataset_id: str = Field(primary_key=True, index=True)


class Event(SQLModel, table=True):
    """One entry of a job's ordered log. `seq` counts from 1 without a gap."""

    __table_args__ = ({"sqlite_with_rowid": False},)

    job_id: str = Field(sa_column=reference("job.id", primary_key=True))
    seq: int = Field(primary_key=True)
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    type: str
    data: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))


class WorkerRow(SQLModel, table=True):
    """A worker that joined: where it is, what it has, what its probes proved."""

    __tablename__ = "worker"
    __table_args__ = (CheckConstraint(one_of("state", ("up", "gone")), name="state"),)

    id: str = Field(primary_key=True)
    engine: str
    address: str
    state: str = Field(index=True)
    joined_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    left_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    resources: dict[str, int] = Field(sa_column=Column(Json, nullable=False))
    facts: dict[str, Any] = Field(sa_column=Column(Json, nullable=False))


ATTEMPT_STATES = ("placed", "claimed", "ended")


class Attempt(SQLModel, table=True):
    """One try at a job on one worker. `claim` is the nonce of the one execution that may write (decision 4)."""

    __table_args__ = (
        CheckConstraint(one_of("state", ATTEMPT_STATES), name="state"),
        CheckConstraint("(state = 'placed') <= (claim IS NULL)", name="claim"),
        UniqueConstraint("job_id", "number", name="uq_attempt_number"),
    )

    id: str = Field(primary_key=True)
    job_id: str = Field(sa_column=reference("job.id", index=True))
    number: int
    worker_id: str = Field(index=True)
    state: str = Field(index=True)
    claim: str | None = None
    events_seen: int = 0
    end: str | None = None
    placed_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    claimed_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    ended_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class Lease(SQLModel, table=True):
    """So much of a worker's resource is taken by an attempt. Free is what a worker has less its leases."""

    __table_args__ = (CheckConstraint("amount > 0", name="amount"),)

    attempt_id: str = Field(sa_column=reference("attempt.id", primary_key=True))
    worker_id: str = Field(primary_key=True, index=True)
    resource: str = Field(primary_key=True)
    amount: int
    node: int = Field(default=0, description="The worker's rank among those of the attempt; 0 is its home.")


class SourceRow(SQLModel, table=True):
    """An uploaded package of a user's own code; it lies unpacked under `HOME/sources/<id>/package/`."""

    __tablename__ = "source"
    __table_args__ = (UniqueConstraint("owner", "sha256", name="uq_source_content"),)

    id: str = Field(primary_key=True)
    owner: str = Field(index=True)
    name: str
    format: str
    bytes: int
    sha256: str
    modules: list[str] = Field(sa_column=Column(Json, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))


class ApiKey(SQLModel, table=True):
    """A key that callers show. Of its secret there is a digest and no more; a revoked key has no row."""

    __tablename__ = "api_key"
    __table_args__ = (
        CheckConstraint("owner <> ''", name="owner"),
        CheckConstraint("length(digest) = 64", name="digest"),
        Index("ix_api_key_newest", "created_at", "id"),
    )

    id: str = Field(primary_key=True)
    owner: str
    name: str
    scopes: list[str] = Field(sa_column=Column(Json, nullable=False))
    digest: str
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    last_used_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class ArtifactRow(SQLModel, table=True):
    """A file of a job: `path` is relative to the job's folder."""

    __tablename__ = "artifact"

    job_id: str = Field(sa_column=reference("job.id", primary_key=True))
    name: str = Field(primary_key=True)
    path: str
    bytes: int
    sha256: str
    media_type: str
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class IdempotencyRow(SQLModel, table=True):
    """The first answer to a keyed POST. `status` is null while that first request is still running."""

    __tablename__ = "idempotency"

    owner: str = Field(primary_key=True)
    scope: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    fingerprint: str
    status: int | None = None
    body: str = ""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))
