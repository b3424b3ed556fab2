"""The story of a job as its owner tells it: submit, cancel, retry, delete. Each change is one write unit."""

import asyncio
import shutil
import time
from collections.abc import Callable

from fastapi import Response
from sqlmodel import Session

from app.control import attempts
from app.datasets.queries import dataset_of
from app.db.idempotency import Keyed, create_once, earlier
from app.db.reader import Reader
from app.db.tables import Job, JobDataset, JobLabel
from app.db.writer import Writer, touch
from app.jobs import queries, states
from app.jobs.admission import Admission, Planned
from app.jobs.planning import UNVERIFIED
from app.jobs.problems import JobIsFinal, JobNeeded, JobNotFinal, NotRetryable, QueueFull
from app.jobs.requests import PROBE, REQUESTS, JobFields, JobRequest, TrainingJob
from app.jobs.schemas import Plan
from app.jobs.series import datasets_in
from app.jobs.states import FINAL, State
from app.jobs.views import NO_PROGRESS
from app.kit.clock import now
from app.kit.idempotency import replay
from app.kit.ids import new_id
from app.sources.queries import source_of
from app.training import references as training
from app.training.asking import Asking
from workers.operations import OPERATIONS

STOPPING_SECONDS = 10.0
"""Within so long an attempt that was told to stop has stopped."""

Answer = Callable[[list[Job]], Response]
"""Makes the response out of the jobs that were made; it runs inside their transaction."""


class JobService:
    def __init__(self, reader: Reader, writer: Writer, admission: Admission, asking: Asking, max_queue: int) -> None:
        self.reader, self.writer, self.admission, self.asking = reader, writer, admission, asking
        self.max_queue = max_queue
        self.files = admission.files

    # ---- submitting --------------------------------------------------------------------------------------------

    async def plan(self, request: JobRequest, owner: str) -> Plan:
        planned = await self.reader.run(lambda db: self.admission.planned(db, request, owner))
        (confirmed,) = await self.asking.confirmed([planned], batch=False)
        return confirmed.plan

    async def submit(
        self, requests: list[JobRequest], owner: str, keyed: Keyed | None, answer: Answer, batch: bool = False
    ) -> Response:
        """Accept all of `requests` or none, and return `answer` of the new jobs once they are durable."""
        if keyed and (first := await self.reader.run(lambda db: earlier(db, keyed))):
            return replay(first)

        def check(db: Session) -> list[Planned]:
            if batch:
                return self.admission.all_planned(db, requests, owner)
            return [self.admission.planned(db, requests[0], owner)]

        planned = await self.asking.confirmed(await self.reader.run(check), batch)
        return await self._create(planned, owner, keyed, answer)

    async def retry(self, job_id: str, owner: str, keyed: Keyed | None, answer: Answer) -> Response:
        """A new job with the same body as this failed or cancelled one."""
        if keyed and (first := await self.reader.run(lambda db: earlier(db, keyed))):
            return replay(first)

        def check(db: Session) -> list[Planned]:
            job = queries.job_of(db, job_id, owner)
            if job.state not in (State.FAILED, State.CANCELLED):
                raise NotRetryable(f"The job is {job.state}; only a failed or cancelled job can be tried again.")
            if job.kind == PROBE:
                raise NotRetryable(f"A {job.kind} is made by `POST /capabilities/probes`; ask there for a new one.")
            asked = {"kind", "params", *JobFields.model_fields}
            planned = self.admission.planned(db, REQUESTS.validate_python(job.model_dump(include=asked)), owner)
            return [Planned(planned.request, planned.plan, retry_of=job.id)]

        planned = await self.asking.confirmed(await self.reader.run(check), batch=False)
        return await self._create(planned, owner, keyed, answer)

    async def runs_code(self, job_id: str, owner: str) -> bool:
        """Whether this job of theirs has a `source`; False of one that is not there."""

        def look(db: Session) -> bool:
            job = db.get(Job, job_id)
            return job is not None and job.owner == owner and job.params.get("source") is not None

        return await self.reader.run(look)

    async def _create(self, planned: list[Planned], owner: str, keyed: Keyed | None, answer: Answer) -> Response:
        def make(db: Session) -> Response:
            waiting = queries.waiting(db)
            if waiting + len(planned) > self.max_queue:
                raise QueueFull(
                    f"{waiting} jobs wait, and the queue takes {self.max_queue}.", headers={"Retry-After": "10"}
                )
            return answer([self._insert(db, one, owner) for one in planned])

        return await create_once(self.writer, keyed, make)

    def _insert(self, db: Session, planned: Planned, owner: str) -> Job:
        request = planned.request
        job = Job(
            id=new_id("job"),
            owner=owner,
            state=State.QUEUED,
            phase="waiting_for_worker",
            progress=NO_PROGRESS,
            plan=planned.plan.model_dump(mode="json"),
            retry_of=planned.retry_of,
            created_at=now(),
            **request.model_dump(mode="json", exclude_unset=False),
        )
        db.add(job)
        db.flush()
        db.add_all(JobLabel(job_id=job.id, name=name, value=value) for name, value in request.labels.items())
        if isinstance(request, TrainingJob) and request.params.source is not None:
            source_of(db, request.params.source, owner)  # likewise
        for dataset_id in sorted(_datasets_in(request)):
            dataset_of(db, dataset_id, owner)  # it may have been deleted since the checks
            db.add(JobDataset(job_id=job.id, dataset_id=dataset_id))
        queries.append_event(db, job, "state", {"from": None, "to": State.QUEUED})
        if planned.plan.fallback:
            queries.append_event(
                db, job, "warning", {"message": fallback_sentence(planned.plan), **planned.plan.fallback.model_dump()}
            )
        for message in planned.plan.warnings:
            queries.append_event(db, job, "warning", {"message": message})
        touch(db, queries.QUEUE_TOPIC)
        return job

    async def sweep(self) -> None:
        """At start-up: remove folders that no row knows, left by a crash between a deletion and its files."""
        known = await self.reader.run(queries.ids)
        for folder in self.files.jobs.iterdir():
            if folder.name not in known:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    # ---- the rest of its life ----------------------------------------------------------------------------------

    async def get(self, job_id: str, owner: str) -> Job:
        return await self.reader.run(lambda db: queries.job_of(db, job_id, owner))

    async def cancel(self, job_id: str, owner: str) -> tuple[Job, bool]:
        """Ask a job to stop. Returns it, and whether it had been cancelled before. Raises JobIsFinal for the other ends."""

        def unit(db: Session) -> tuple[Job, bool]:
            job = queries.job_of(db, job_id, owner)
            if job.state == State.CANCELLED:
                return job, True
            if job.state in FINAL:
                raise JobIsFinal(f"The job has {job.state} already; there is nothing left to cancel.")
            queries.apply(db, job, states.Event.CANCEL_REQUESTED, by=owner)
            attempts.withdraw_unclaimed(db, job)
            return job, False

        return await self.writer.run(unit)

    async def delete(self, job_id: str, owner: str) -> None:
        """Remove a final job, its log and its files. Raises JobNotFinal, and JobNeeded while another one goes on from its checkpoint.

        A job whose time ran out is final while its attempt is still being stopped and may write: that end is waited for.
        """

        def unit(db: Session) -> bool:
            job = queries.job_of(db, job_id, owner)
            if job.state not in FINAL:
                raise JobNotFinal(f"The job is {job.state}; cancel it first, or wait until it has ended.")
            if queries.open_attempt(db, job.id):
                return False
            if needing := queries.jobs_that_need(db, job.id):
                raise JobNeeded(
                    f"{needing[0]} has not ended and goes on from this job's checkpoint; wait for it or cancel it first."
                )
            db.delete(job)
            touch(db, queries.job_topic(job_id))
            return True

        deadline = time.monotonic() + STOPPING_SECONDS
        while not await self.writer.run(unit):
            if time.monotonic() > deadline:
                raise JobNotFinal("The job has ended, but its last attempt is still being stopped; try again later.")
            await asyncio.sleep(0.1)
        await asyncio.to_thread(shutil.rmtree, self.files.job(job_id), ignore_errors=True)


def _datasets_in(request: JobRequest) -> set[str]:
    if isinstance(request, TrainingJob):
        return training.datasets_in(request.params)
    return datasets_in(OPERATIONS[request.kind], request.params)


def fallback_sentence(plan: Plan) -> str:
    assert plan.fallback is not None
    unverified = "" if plan.fallback.wanted == "tiles" else f" {UNVERIFIED}"
    return (
        f"{plan.fallback.wanted} was asked for; the job runs on {plan.backend} with {plan.implementation}: "
        f"{plan.fallback.reason}.{unverified}"
    )
