"""Probes, run again: on request as a job of kind `probe`, and by the server itself before its evidence is too old."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import Response
from pydantic import BaseModel
from sqlmodel import Session

from app.capabilities import queries
from app.control.queries import open_attempts
from app.db.idempotency import Keyed, create_once
from app.db.reader import Reader
from app.db.tables import Job, WorkerRow
from app.db.writer import Writer, touch
from app.engines.all import Engines
from app.engines.base import AskFailed, EngineDown
from app.jobs import queries as jobs
from app.jobs.problems import BackendUnavailable, QueueFull
from app.jobs.requests import PROBE, Execution
from app.jobs.schemas import Estimate, Plan
from app.jobs.states import State
from app.jobs.views import NO_PROGRESS
from app.kit.clock import now
from app.kit.ids import new_id
from app.kit.problems import Internal, Problem
from workers.contract import Probe, ProbeParams

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 120.0
"""How long a worker may take; a cold nursery compiles first."""
LOOK_SECONDS: Final = 60.0


class Probed(BaseModel):
    """What a worker found, or why it did not."""

    probes: list[Probe] = []
    error: str | None = None


class Findings(BaseModel):
    """What became of a job that probes: `problem` is why it failed."""

    workers: dict[str, Probed]
    problem: dict[str, Any] | None = None


class Probing:
    def __init__(
        self, reader: Reader, writer: Writer, engines: Engines, max_queue: int, evidence_seconds: float
    ) -> None:
        self._reader, self._writer, self._engines, self._max_queue = reader, writer, engines, max_queue
        self._evidence_seconds = evidence_seconds

    async def submit(
        self, params: ProbeParams, owner: str, keyed: Keyed | None, answer: Callable[[list[Job]], Response]
    ) -> Response:
        """A job that has every worker probe itself; `answer` of it, once it is durable."""

        def make(db: Session) -> Response:
            if (waiting := jobs.waiting(db)) >= self._max_queue:
                raise QueueFull(
                    f"{waiting} jobs wait, and the queue takes {self._max_queue}.", headers={"Retry-After": "10"}
                )
            return answer([_insert(db, params, owner)])

        return await create_once(self._writer, keyed, make)

    async def find(self, params: ProbeParams, instance: str) -> Findings:
        """Have every worker of every engine probe itself now, and keep what they find. `instance` is the path of who asks."""
        workers = await self._reader.run(queries.workers_up)
        checks: list[str] = [params.check]
        if params.require_cuda and params.check not in ("all", "cuda"):
            checks.append("cuda")
        answers = await asyncio.gather(*(self._ask(worker, checks) for worker in workers))
        found = {worker.id: answer for worker, answer in zip(workers, answers, strict=True)}
        problem = _what_is_wrong(found, params.require_cuda)
        return Findings(workers=found, problem=problem and problem.document(instance))

    async def _ask(self, worker: WorkerRow, checks: Sequence[str]) -> Probed:
        probes: list[Probe] = []
        try:
            for check in checks:
                answer = await self._engines[worker.engine].ask(
                    "workers.agent:probe", [check], worker.address, PROBE_SECONDS
                )
                probes += [Probe.model_validate(each) for each in answer]
        except TimeoutError:
            return Probed(error=f"It did not answer within {PROBE_SECONDS:.0f} s.")
        except (EngineDown, AskFailed) as fault:  # the others' findings count all the same
            return Probed(error=str(fault))
        except Exception as fault:
            log.exception("worker %s could not be probed", worker.id)
            return Probed(error=f"{type(fault).__name__}: {fault}")
        await self._writer.run(lambda db: queries.keep_probes(db, worker.id, probes))
        return Probed(probes=probes)

    # ---- by the server itself ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Renew evidence at half its age limit, on workers that have nothing to do, until cancelled.

        A probe beside a job would compete with it, for a GPU's memory for instance, and find less than there is.
        """
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, self._evidence_seconds / 4))
            try:
                for worker in await self._reader.run(self._fading):
                    await self._ask(worker, ["all"])
            except Exception:
                log.exception("evidence could not be renewed; the next look follows")

    def _fading(self, db: Session) -> list[WorkerRow]:
        busy = {attempt.worker_id for attempt in open_attempts(db)}
        return [
            worker
            for worker in queries.workers_up(db)
            if worker.id not in busy
            and worker.engine in self._engines
            and any(queries.age_seconds(probe) > self._evidence_seconds / 2 for probe in worker.facts["probes"])
        ]


def _insert(db: Session, params: ProbeParams, owner: str) -> Job:
    plan = Plan(
        backend="cpu",
        implementation="probe",
        function="probes",
        device="cpu",
        workers=len(queries.workers_up(db)),
        fallback=None,
        acceleration_verified=False,
        estimate=Estimate(seconds=None, peak_bytes=0),
        reasons=["Every worker probes itself; the job takes no room of any."],
        warnings=[],
    )
    job = Job(
        id=new_id("job"),
        owner=owner,
        kind=PROBE,
        state=State.QUEUED,
        phase="waiting_for_worker",
        progress=NO_PROGRESS,
        params=params.model_dump(mode="json"),
        execution=Execution().model_dump(mode="json"),
        plan=plan.model_dump(mode="json"),
        labels={},
        created_at=now(),
    )
    db.add(job)
    db.flush()
    jobs.append_event(db, job, "state", {"from": None, "to": State.QUEUED})
    touch(db, jobs.QUEUE_TOPIC)
    return job


def _what_is_wrong(found: Mapping[str, Probed], require_cuda: bool) -> Problem | None:
    """Why a job that probes failed, all things considered."""
    errors = [f"{worker}: {answer.error}" for worker, answer in found.items() if answer.error]
    if not found or len(errors) == len(found):
        return Internal("No worker could be probed. " + " ".join(errors))
    proofs = [probe for answer in found.values() for probe in answer.probes if probe.name == "cuda"]
    if not require_cuda or any(probe.evidence == "executed" for probe in proofs):
        return None
    reasons = sorted({probe.detail.rstrip(".") for probe in proofs}) or ["No worker ran the cuda probe"]
    return BackendUnavailable(f"CUDA is required, and no worker has executed a GPU function. {'. '.join(reasons)}.")
