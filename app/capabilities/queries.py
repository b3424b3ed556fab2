"""The SQL of workers, and what planning needs to know of them."""

from collections.abc import Sequence

from sqlmodel import Session, col, func, select

from app.db.tables import Lease, WorkerRow
from app.jobs.planning import WorkerFacts


def workers_up(db: Session) -> Sequence[WorkerRow]:
    return db.exec(select(WorkerRow).where(WorkerRow.state == "up").order_by(col(WorkerRow.joined_at))).all()


def free_resources(db: Session, workers: Sequence[WorkerRow]) -> dict[str, dict[str, int]]:
    """What each worker has less what is leased."""
    free = {worker.id: dict(worker.resources) for worker in workers}
    taken = select(Lease.worker_id, Lease.resource, func.sum(Lease.amount)).group_by(Lease.worker_id, Lease.resource)
    for worker_id, resource, amount in db.exec(taken).all():
        if worker_id in free:
            free[worker_id][resource] = free[worker_id].get(resource, 0) - amount
    return free


def worker_facts(db: Session) -> list[WorkerFacts]:
    return [
        WorkerFacts(
            id=worker.id,
            threads=worker.facts["threads"],
            cells_per_second=worker.facts["speed"].get("matrix_profile_cells_per_second", 0.0),
            evidence={probe["name"]: (probe["evidence"], probe["detail"]) for probe in worker.facts["probes"]},
        )
        for worker in workers_up(db)
    ]
