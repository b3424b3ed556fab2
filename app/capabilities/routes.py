"""The HTTP side of what this deployment can do, and of whether it can do anything now."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from app.capabilities import queries
from app.capabilities.readiness import what_is_missing
from app.db.tables import WorkerRow
from app.jobs.planning import BACKENDS, availability
from app.kit.catalogue import responses
from app.kit.clock import Rfc3339
from app.kit.problems import Unavailable
from app.services import Services, services
from workers.operations import OPERATIONS

router = APIRouter()
House = Annotated[Services, Depends(services)]


class WorkerView(BaseModel):
    id: str
    host: str
    address: str
    resources: dict[str, int]
    threads: int
    memory_bytes: int
    cpu: dict[str, Any]
    gpus: list[dict[str, Any]]
    versions: dict[str, str]
    probes: list[dict[str, Any]] = Field(description="What was tried on this worker, and what it proved.")
    speed: dict[str, float] = Field(description="Measured on this worker.")


class EngineView(BaseModel):
    name: str
    mode: str
    status: str
    address: str | None
    workers: list[WorkerView]


class BackendView(BaseModel):
    available: bool
    evidence: str
    functions: list[str]
    reason: str | None


class OperationView(BaseModel):
    kind: str
    backends: dict[str, BackendView]


class Capabilities(BaseModel):
    """What this deployment has been proved to do. Nothing is available on less than `executed`."""

    probed_at: Rfc3339 | None
    engines: list[EngineView]
    operations: list[OperationView]


class Alive(BaseModel):
    status: str


class NotReadyToRun(Unavailable):
    """A job submitted now would be kept, but could not run: the detail names what is missing.

    While the server starts this takes some seconds. Later it means that the database cannot be written, that the cluster is
    down, or that no worker has joined.
    """

    title = "Not ready"


@router.get("/capabilities", tags=["capabilities"])
async def get_capabilities(house: House) -> Capabilities:
    """Every engine and worker with what its probes showed, and every kind of job with where it can run."""
    workers, facts = await house.reader.run(lambda db: (queries.workers_up(db), queries.worker_facts(db)))
    engine = house.engine
    probed = [probe["at"] for worker in workers for probe in worker.facts["probes"]]
    operations = []
    for kind, operation in OPERATIONS.items():
        backends = {}
        for backend in BACKENDS:
            available, evidence, reason = availability(operation, backend, facts)
            names = operation.functions.get(backend)
            functions = [names.normalised, names.p_norm] if names else []
            backends[backend] = BackendView(available=available, evidence=evidence, functions=functions, reason=reason)
        operations.append(OperationView(kind=kind, backends=backends))
    view = EngineView(
        name=engine.name,
        mode=engine.mode,
        status="up" if engine.address else "down",
        address=engine.address,
        workers=[_worker_view(worker) for worker in workers],
    )
    return Capabilities(probed_at=max(probed, default=None), engines=[view], operations=operations)


def _worker_view(worker: WorkerRow) -> WorkerView:
    return WorkerView.model_validate({**worker.facts, "resources": worker.resources})


@router.get("/health/live", tags=["health"])
async def get_liveness() -> Alive:
    """The process answers."""
    return Alive(status="live")


@router.get("/health/ready", tags=["health"], responses=responses(NotReadyToRun))
async def get_readiness(house: House) -> Alive:
    """A job submitted now could run: the database can be written, the cluster is up, a worker is there."""
    missing = await what_is_missing(house)
    if missing:
        raise NotReadyToRun("Not ready: " + "; ".join(missing) + ".", headers={"Retry-After": "2"})
    return Alive(status="ready")
