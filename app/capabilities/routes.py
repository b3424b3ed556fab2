"""The HTTP side of what this deployment can do, and of whether it can do anything now."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Request, Response
from pydantic import BaseModel, Field

from app.callers import Caller, Submitter
from app.capabilities import queries
from app.capabilities.readiness import what_was_missing
from app.capabilities.training import TrainingView, training_view
from app.db.tables import WorkerRow
from app.db.writer import StorageUnavailable
from app.jobs.answers import keyed_by, made
from app.jobs.planning import BACKENDS, WorkerFacts, availability
from app.jobs.problems import QueueFull
from app.jobs.routes import ACCEPTED
from app.jobs.schemas import JobView
from app.kit.catalogue import responses
from app.kit.clock import Rfc3339
from app.kit.idempotency import IdempotencyKey
from app.kit.json_bodies import StrictJSONRoute
from app.kit.middleware import json_only
from app.kit.prefer import Wait
from app.kit.problems import IdempotencyKeyReused, RequestInFlight, Unavailable
from app.services import Services, services
from workers.contract import ProbeParams
from workers.operations import OPERATIONS, Operation

router = APIRouter(route_class=StrictJSONRoute)
House = Annotated[Services, Depends(services)]


EXAMPLES: dict[str, Any] = {
    "all": {"summary": "Everything", "value": {"check": "all", "require_cuda": False}},
    "cuda": {"summary": "Is there a GPU that works?", "value": {"check": "cuda", "require_cuda": True}},
}


class ProbeView(BaseModel):
    """One thing a worker tried, what it proved and when."""

    name: str
    evidence: str
    detail: str
    seconds: float
    at: Rfc3339
    expired: bool = Field(description="Whether it is too old to count.")


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
    probes: list[ProbeView] = Field(description="What was tried on this worker, and what it proved.")
    speed: dict[str, float] = Field(description="Measured on this worker.")
    storage: Literal["shared", "http"] = Field(
        description="Whether it reads and writes the server's folder of files itself, or fetches and puts back over HTTP."
    )


class EngineView(BaseModel):
    name: str
    mode: str
    status: str
    address: str | None
    warnings: list[str] = Field(description="What to know of this cluster: that anybody can reach it, for instance.")
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
    training: TrainingView


class Alive(BaseModel):
    status: str


class NotReadyToRun(Unavailable):
    """A job submitted now would be kept, but could not run: the detail names what is missing.

    While the server starts this takes some seconds. Later it means that the database cannot be written, that a cluster is
    down, or that no worker has joined it.
    """

    title = "Not ready"


@router.get("/capabilities", tags=["capabilities"])
async def get_capabilities(house: House, caller: Caller) -> Capabilities:
    """Every engine and worker with what its probes showed, and every kind of job with where it can run.

    A probe counts for as long as `TIDEMILL_EVIDENCE_SECONDS` says; the server runs them again on workers that have nothing to do.
    """
    lasts = house.settings.evidence_seconds
    workers, facts = await house.reader.run(lambda db: (queries.workers_up(db), queries.worker_facts(db, lasts)))
    engines = [
        EngineView(
            name=name,
            mode=engine.mode,
            status="up" if engine.address else "down",
            address=engine.address,
            warnings=engine.warnings,
            workers=[_worker_view(worker, lasts) for worker in workers if worker.engine == name],
        )
        for name, engine in house.engines.items()
    ]
    return Capabilities(
        probed_at=max((probe["at"] for worker in workers for probe in worker.facts["probes"]), default=None),
        engines=engines,
        operations=[
            OperationView(
                kind=kind, backends={backend: _backend_view(operation, backend, facts) for backend in BACKENDS}
            )
            for kind, operation in OPERATIONS.items()
        ],
        training=training_view(workers, lasts),
    )


def _worker_view(worker: WorkerRow, evidence_seconds: float) -> WorkerView:
    probes = [{**probe, "expired": queries.age_seconds(probe) > evidence_seconds} for probe in worker.facts["probes"]]
    storage = "shared" if worker.facts.get("shares_storage", True) else "http"
    about = {"resources": worker.resources, "probes": probes, "storage": storage}
    return WorkerView.model_validate({**worker.facts, **about})


def _backend_view(operation: Operation, backend: str, workers: Sequence[WorkerFacts]) -> BackendView:
    available, evidence, reason = availability(operation, backend, workers)
    names = operation.functions.get(backend)
    functions = [names.normalised, names.p_norm] if names else []
    functions += operation.tiles.names if operation.tiles and backend != "cuda" else []
    return BackendView(available=available, evidence=evidence, functions=functions, reason=reason)


@router.post(
    "/capabilities/probes",
    tags=["capabilities"],
    status_code=202,
    response_model=JobView,
    dependencies=[Depends(json_only)],
    responses={**ACCEPTED, **responses(QueueFull, IdempotencyKeyReused, RequestInFlight, StorageUnavailable)},
)
async def probe_again(
    request: Request,
    house: House,
    caller: Submitter,
    key: IdempotencyKey,
    wait: Wait,
    body: Annotated[ProbeParams, Body(openapi_examples=EXAMPLES)] = ProbeParams(),  # noqa: B008 - it is frozen
) -> Response:
    """Have every worker prove again what it can do. The job's `result` has what each found; `GET /capabilities` counts it at once.

    With `require_cuda` the job fails unless some worker executed a GPU function, and its `error` says what is missing.
    """
    keyed = await keyed_by(request, caller, key)
    return await made(
        house, caller.name, wait, keyed, lambda answer: house.probing.submit(body, caller.name, keyed, answer)
    )


@router.get("/health/live", tags=["health"])
async def get_liveness() -> Alive:
    """The process answers."""
    return Alive(status="live")


@router.get("/health/ready", tags=["health"], responses=responses(NotReadyToRun))
async def get_readiness(house: House) -> Alive:
    """A job submitted now could run: the database can be written, every engine is up, each has a worker."""
    missing = await what_was_missing(house)
    if missing:
        raise NotReadyToRun("Not ready: " + "; ".join(missing) + ".", headers={"Retry-After": "2"})
    return Alive(status="ready")
