"""The SQL of what runs: open attempts, their leases, and what has waited or run for too long."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, and_, col, delete, func, or_, select

from app.capabilities import queries as capabilities
from app.control.demand import Demand
from app.control.placing import Candidate, Share, devices_of
from app.db.tables import Attempt, Job, Lease, WorkerRow
from app.jobs.states import State
from app.kit.clock import now


def waiting_demands(db: Session) -> list[Demand]:
    """The different things that waiting jobs ask of a worker."""
    query = select(Job.demand).where(Job.state == State.QUEUED).distinct()
    return [Demand.parse(text) for text in db.exec(query).all()]


@dataclass(frozen=True, order=True)
class Place:
    """A job's place in the queue; the least is first."""

    minus_priority: int
    created_at: datetime
    job_id: str


def head_of(db: Session, demand: Demand) -> Place | None:
    """The first waiting job with this demand. One whose time is used up is passed over; the reconciler ends it."""
    has_time = or_(col(Job.timeout_seconds).is_(None), col(Job.seconds_used) < col(Job.timeout_seconds))
    wanted = and_(col(Job.state) == State.QUEUED, col(Job.demand) == str(demand), has_time)
    # Two steps in the order of `ix_job_demand`: nothing is sorted, and of a long queue of large jobs only the first is read.
    highest: int | None = db.exec(select(func.max(Job.priority)).where(wanted)).one()
    if highest is None:
        return None
    order = (col(Job.created_at), col(Job.id))
    first = select(Job.created_at, Job.id).where(wanted, Job.priority == highest).order_by(*order).limit(1)
    created_at, job_id = db.exec(first).one()
    return Place(-highest, created_at, job_id)


def candidates(db: Session, engines: Collection[str] | None = None) -> list[Candidate]:
    """The workers that are up, with what is free of each; of these engines only, where they are named."""
    everyone = capabilities.workers_up(db)
    held: dict[str, list[Lease]] = {worker.id: [] for worker in everyone}
    for lease in db.exec(select(Lease)).all():
        held.setdefault(lease.worker_id, []).append(lease)
    gpus = {worker.id: capabilities.gpus(worker) for worker in everyone}
    # Workers of one machine may share a GPU: what one of them has leased is taken for all.
    busy = {
        gpus[worker.id][index]
        for worker in everyone
        for index in devices_of(lease.resource for lease in held[worker.id])
    }
    workers = [worker for worker in everyone if engines is None or worker.engine in engines]
    return [_candidate(worker, held[worker.id], gpus[worker.id], busy) for worker in workers]


def _candidate(worker: WorkerRow, held: Sequence[Lease], gpus: Mapping[int, str], busy: Collection[str]) -> Candidate:
    free_devices = frozenset(index for index, device in gpus.items() if device not in busy)
    free = dict(worker.resources)
    free["CPU"] = free.get("CPU", 0) - sum(lease.amount for lease in held if lease.resource == "CPU")
    if "GPU" in free:
        free["GPU"] = len(free_devices)
    return Candidate(
        worker_id=worker.id,
        threads=worker.facts["threads"],
        free=free,
        engine=worker.engine,
        cuda=_evidence(worker, "cuda"),
        training_cuda=_evidence(worker, "training/accelerator/cuda"),
        devices=gpus,
        free_devices=free_devices,
        memory_bytes=worker.facts.get("memory_bytes", 0),
    )


def _evidence(worker: WorkerRow, name: str) -> str:
    return next((str(probe["evidence"]) for probe in worker.facts["probes"] if probe["name"] == name), "absent")


def open_attempts(db: Session, worker_id: str | None = None) -> Sequence[Attempt]:
    """The attempts that have not ended: all of them, or those that have one worker for their home or in their gang."""
    query = select(Attempt).where(Attempt.state != "ended")
    if worker_id is None:
        return db.exec(query).all()
    leased = select(Lease.attempt_id).where(Lease.worker_id == worker_id)
    return db.exec(query.where(or_(Attempt.worker_id == worker_id, col(Attempt.id).in_(leased)))).all()


def engines_at_work(db: Session) -> Sequence[str]:
    """The engine of each open attempt."""
    query = select(WorkerRow.engine).join(Attempt, col(Attempt.worker_id) == col(WorkerRow.id))
    return db.exec(query.where(Attempt.state != "ended")).all()


def workers_with_stops(db: Session) -> list[tuple[str, str]]:
    """(engine, address) of the workers that may run something of a job which is not to run.

    The pieces of a job that spreads itself may be on any worker of its engine.
    """
    query = (
        select(WorkerRow, Job.demand)
        .join(Attempt, col(Attempt.worker_id) == col(WorkerRow.id))
        .join(Job, col(Job.id) == col(Attempt.job_id))
        .where(Attempt.state != "ended", Job.state != State.RUNNING)
    )
    stopping = db.exec(query).all()
    homes = {(home.engine, home.address) for home, _ in stopping}
    spread = {home.engine for home, demand in stopping if Demand.parse(demand).spreads}
    others = {(worker.engine, worker.address) for worker in capabilities.workers_up(db) if worker.engine in spread}
    return sorted(homes | others)


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


def shares(db: Session, attempt: Attempt) -> list[Share]:
    """What an attempt holds of each worker of its gang (`CPU`, and `GPU:<index>` for each device), its home first."""
    held: dict[str, dict[str, int]] = {attempt.worker_id: {}}
    query = select(Lease).where(Lease.attempt_id == attempt.id).order_by(col(Lease.node), col(Lease.resource))
    for lease in db.exec(query).all():
        held.setdefault(lease.worker_id, {})[lease.resource] = lease.amount
    return [Share(worker_id, needs) for worker_id, needs in held.items()]


def devices(db: Session, attempt: Attempt) -> list[int]:
    """The CUDA indices of its home that are the attempt's alone."""
    return devices_of(shares(db, attempt)[0].needs)


def needs(db: Session, attempt: Attempt) -> dict[str, int]:
    """What an engine is asked to reserve of the home for an attempt, in its own tags: `CPU` and `GPU`."""
    held = shares(db, attempt)[0].needs
    asked = {"CPU": held.get("CPU", 0), "GPU": len(devices_of(held))}
    return {resource: amount for resource, amount in asked.items() if amount}


def free_leases(db: Session, attempt_id: str) -> None:
    db.exec(delete(Lease).where(col(Lease.attempt_id) == attempt_id))


def peers(db: Session, worker_id: str) -> dict[str, int] | None:
    """Addresses of the workers of the same engine that are up, this one among them, with their computing threads; None where it is
    not up itself."""
    columns = (WorkerRow.id, WorkerRow.engine, WorkerRow.address, WorkerRow.resources)
    up = db.exec(select(*columns).where(WorkerRow.state == "up")).all()
    engine = next((engine for each, engine, _, _ in up if each == worker_id), None)
    return None if engine is None else {address: room["CPU"] for _, other, address, room in up if other == engine}
