"""The workers' door: join, claim, report, leave. For workers, not for people, and so not in the schema."""

from typing import Annotated

from fastapi import APIRouter, Depends
from sqlmodel import Session

from app.capabilities.probing import Findings
from app.control import attempts
from app.control import queries as running
from app.control.admission import admit, admitted
from app.control.protocol import same_version
from app.db.tables import Attempt, Job, WorkerRow
from app.db.writer import touch
from app.jobs import queries
from app.jobs.history import earlier
from app.jobs.requests import TRAINING
from app.jobs.series import sources_in
from app.kit.clock import now
from app.kit.problems import Conflict, NotFound
from app.services import Services, services
from app.training.task import training_task
from workers.contract import (
    Claim,
    Join,
    Message,
    ProbeParams,
    Report,
    ReportAnswer,
    Source,
    StorageFacts,
    Task,
    TrainingTask,
)
from workers.operations import OPERATIONS

router = APIRouter(prefix="/internal", include_in_schema=False, dependencies=[Depends(admitted), Depends(same_version)])
House = Annotated[Services, Depends(services)]


class OtherStorage(Conflict):
    """This worker was told of another storage than the server has now.

    The server was started with another `TIDEMILL_STORAGE`, or another HOME, since. Start the worker again.
    """


@router.post("/workers", status_code=204)
async def join(introduction: Join, house: House) -> None:
    """A worker that has probed itself offers to work."""
    await admit(introduction, house)
    if introduction.storage not in (None, house.files.storage_id):
        raise OtherStorage("The server's storage is another one than this worker was told of. Start the worker again.")

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

    def unit(db: Session) -> Task | NotFound:
        attempt, job = attempts.claim(db, attempt_id, asked)
        try:
            sources, training = _inputs(db, house, attempt, job)
            before = [] if training else earlier(db, house.files, attempt, job)
        except NotFound as gone:
            attempts.refuse(db, attempt, job, gone.detail)
            return gone
        return Task(
            attempt=attempt.id,
            job=job.id,
            kind=job.kind,
            params={name: value for name, value in job.params.items() if name not in sources},
            sources=sources,
            plan=job.plan,
            devices=running.devices(db, attempt),
            folder=str(house.files.attempt(job.id, attempt.number).resolve()),
            storage=StorageFacts(path=str(house.files.storage), id=house.files.storage_id),
            earlier=before,
            training=training,
        )

    task = await house.writer.run(unit)
    if isinstance(task, NotFound):
        raise attempts.ClaimRefused(task.detail)
    return task


def _inputs(
    db: Session, house: Services, attempt: Attempt, job: Job
) -> tuple[dict[str, list[Source]], TrainingTask | None]:
    """What the job reads. Raises NotFound where that is gone."""
    if operation := OPERATIONS.get(job.kind):
        return sources_in(db, house.files, operation, job.params), None
    if job.kind == TRAINING:
        return training_task(db, house.files, attempt, job, house.settings.training_allowed)
    return {}, None  # a probe


class ProbesAsked(Message):
    """A job of kind `probe` asks for its work to be done: by every worker, and so by the server."""

    claim: str
    check: str


@router.post("/attempts/{attempt_id}/probes")
async def probe(attempt_id: str, asked: ProbesAsked, house: House) -> Findings:
    """Have all workers probe themselves, on behalf of the execution that holds this attempt."""
    job = await house.reader.run(lambda db: attempts.job_held(db, attempt_id, asked.claim))
    return await house.probing.find(ProbeParams.model_validate({**job.params, "check": asked.check}), f"/jobs/{job.id}")


@router.post("/workers/{worker_id}/report")
async def report(worker_id: str, told: Report, house: House) -> ReportAnswer:
    """The heartbeat: what runs, what happened, what ended. The answer says what is safe here, and what must stop."""

    at_work = [*told.running, *told.pieces]

    def idle(db: Session) -> tuple[dict[str, int] | None, list[str]]:
        return running.peers(db, worker_id), attempts.to_stop(db, at_work)

    def unit(db: Session) -> list[str]:
        for event in told.events:
            attempts.accept_event(db, event)
        for outcome in told.outcomes:
            attempts.accept_outcome(db, outcome)
        return attempts.to_stop(db, at_work)

    peers, stop = await house.reader.run(idle)
    if peers is None:
        raise NotFound(f"There is no worker {worker_id!r} here; join again.")
    # A piece here says nothing of the driver, which may be on another worker, or gone.
    house.reconciler.hear(worker_id, [line.attempt for line in told.running])
    if told.events or told.outcomes:
        stop = await house.writer.run(unit)
    # An attempt whose outcome was taken has ended here, but a piece of it may not know yet.
    ended = {outcome.attempt for outcome in told.outcomes} - {line.attempt for line in told.pieces}
    return ReportAnswer(
        acknowledged=[outcome.attempt for outcome in told.outcomes],
        stop=sorted(set(stop) - ended),
        peers=peers,
    )
