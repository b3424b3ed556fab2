"""What the driver of a training attempt is told: its gang, its data, and where earlier attempts left their checkpoints."""

from collections.abc import Iterator, Sequence

from sqlmodel import Session, col, select

from app.control import queries as running
from app.control.placing import devices_of
from app.db.tables import Attempt, Event, Job, WorkerRow
from app.files import Files
from app.jobs.history import earlier
from app.training import references
from workers.contract import Node, Source, TrainingParams, TrainingTask


def training_task(
    db: Session, files: Files, attempt: Attempt, job: Job, allow: Sequence[str]
) -> tuple[dict[str, list[Source]], TrainingTask]:
    """The series by their pointers, and the rest. Raises NotFound where something it needs was deleted meanwhile."""
    params = TrainingParams.model_validate(job.params)
    task = TrainingTask(
        nodes=list(_nodes(db, attempt)),
        tables=references.tables(db, files, params),
        checkpoint=references.checkpoint(db, files, params.config),
        earlier=earlier(db, files, attempt, job),
        metrics_seen=_metrics_seen(db, job.id),
        source=str((files.source(params.source) / "package").resolve()) if params.source else None,
        allow=list(allow),
    )
    return references.sources(db, files, params), task


def _nodes(db: Session, attempt: Attempt) -> Iterator[Node]:
    for share in running.shares(db, attempt):
        worker = db.get_one(WorkerRow, share.worker_id)
        yield Node(
            worker=worker.id,
            address=worker.address,
            host=worker.facts["host"],
            threads=worker.facts["threads"],
            devices=devices_of(share.needs),
            shares_storage=worker.facts.get("shares_storage", True),
        )


def _metrics_seen(db: Session, job_id: str) -> dict[str, int]:
    """metric → its last step among the job's events. They came in order, so what follows it has not been seen."""
    seen: dict[str, int] = {}
    query = select(Event.data).where(Event.job_id == job_id, Event.type == "metric").order_by(col(Event.seq))
    for data in db.exec(query).all():
        seen[str(data["name"])] = max(int(data["step"]), seen.get(str(data["name"]), -1))
    return seen
