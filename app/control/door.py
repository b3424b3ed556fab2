"""The workers' door: join, claim, report, leave. For workers, not for people, and so not in the schema."""

import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlmodel import Session

from app.control import attempts
from app.db.tables import WorkerRow
from app.db.writer import touch
from app.engines.base import EngineDown
from app.jobs import queries
from app.jobs.series import source_of
from app.kit.clock import now
from app.kit.problems import Conflict, NotFound, Problem, Unavailable
from app.services import Services, services
from workers.contract import VERSION, Claim, Join, Report, ReportAnswer, Task


class WorkerNotAdmitted(Problem):
    """This worker showed no join token, or a wrong one.

    Start it with the server's `TIDEMILL_JOIN_TOKEN` in `--token` or in its environment.
    """

    status, title = 401, "Worker not admitted"


class VersionMismatch(Conflict):
    """This worker speaks another version of the protocol than the server.

    Install the same Tidemill on both.
    """


class NotOnThisCluster(Conflict):
    """This worker joined another cluster than the one the server sends its jobs to.

    Start it with the server's scheduler in `--scheduler`; `GET /capabilities` names it.
    """


def admitted(request: Request) -> None:
    expected = services(request).settings.join_token
    shown = request.headers.get("authorization", "").removeprefix("Bearer ")
    if expected is not None and not hmac.compare_digest(shown.encode(), expected.encode()):
        raise WorkerNotAdmitted(headers={"WWW-Authenticate": "Bearer"})


router = APIRouter(prefix="/internal", include_in_schema=False, dependencies=[Depends(admitted)])
House = Annotated[Services, Depends(services)]


@router.post("/workers", status_code=204)
async def join(introduction: Join, house: House) -> None:
    """A worker that has probed itself offers to work."""
    if introduction.version != VERSION:
        raise VersionMismatch(f"The worker speaks version {introduction.version}, the server version {VERSION}.")

    try:
        present = await house.engine.workers()
    except EngineDown as down:
        raise Unavailable(f"The server's cluster is not up yet ({down}).", headers={"Retry-After": "1"}) from down
    if introduction.address not in present:
        raise NotOnThisCluster(
            f"The worker at {introduction.address} is not on the server's cluster, which is at {house.engine.address}; start it "
            "with that address in --scheduler, or name its scheduler to the server in TIDEMILL_DASK_SCHEDULER."
        )

    def unit(db: Session) -> None:
        db.merge(
            WorkerRow(
                id=introduction.id,
                engine=introduction.engine,
                address=introduction.address,
                state="up",
                joined_at=now(),
                left_at=None,
                resources=introduction.resources,
                facts=introduction.model_dump(mode="json", exclude={"resources"}),
            )
        )
        touch(db, queries.QUEUE_TOPIC)

    house.reconciler.hear(introduction.id)
    await house.writer.run(unit)


@router.post("/workers/{worker_id}/leave", status_code=204)
async def leave(worker_id: str, house: House) -> None:
    """A worker says goodbye; what it still ran starts again elsewhere."""
    await house.reconciler.dismiss(worker_id)


@router.post("/attempts/{attempt_id}/claim")
async def claim(attempt_id: str, asked: Claim, house: House) -> Task:
    """An execution asks to be the one."""

    def unit(db: Session) -> Task:
        attempt, job = attempts.claim(db, attempt_id, asked)
        references = {name: job.params[name] for name in ("series", "against") if job.params.get(name)}
        return Task(
            attempt=attempt.id,
            job=job.id,
            kind=job.kind,
            params={name: value for name, value in job.params.items() if name not in references},
            sources={name: source_of(db, house.files, reference) for name, reference in references.items()},
            plan=job.plan,
            folder=str(house.files.attempt(job.id, attempt.number).resolve()),
        )

    return await house.writer.run(unit)


@router.post("/workers/{worker_id}/report")
async def report(worker_id: str, told: Report, house: House) -> ReportAnswer:
    """The heartbeat: what runs, what happened, what ended. The answer says what is safe here, and what must stop."""

    def idle(db: Session) -> tuple[bool, list[str]]:
        return _is_up(db, worker_id), attempts.to_stop(db, told.running)

    def unit(db: Session) -> list[str]:
        for event in told.events:
            attempts.accept_event(db, event)
        for outcome in told.outcomes:
            attempts.accept_outcome(db, outcome)
        return attempts.to_stop(db, told.running)

    up, stop = await house.reader.run(idle)
    if not up:
        raise NotFound(f"There is no worker {worker_id!r} here; join again.")
    house.reconciler.hear(worker_id, [line.attempt for line in told.running])
    if told.events or told.outcomes:
        stop = await house.writer.run(unit)
    acknowledged = [outcome.attempt for outcome in told.outcomes]
    return ReportAnswer(acknowledged=acknowledged, stop=[a for a in stop if a not in acknowledged])


def _is_up(db: Session, worker_id: str) -> bool:
    worker = db.get(WorkerRow, worker_id)
    return worker is not None and worker.state == "up"
