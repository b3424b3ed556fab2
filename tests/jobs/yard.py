"""Jobs, workers and attempts on a real database, with everything of the control plane but HTTP and the cluster itself."""

import asyncio
import itertools
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Response
from sqlmodel import Session, select

from app.capabilities import queries as capabilities
from app.control import attempts
from app.control.dispatcher import Dispatcher
from app.control.reconciler import Reconciler
from app.db.tables import Attempt, Event, Job, Lease, WorkerRow
from app.engines.base import EngineDown
from app.jobs import queries
from app.jobs.schemas import JobRequest
from app.jobs.service import JobService
from app.jobs.states import FINAL
from app.kit.changes import Changes
from app.kit.clock import now
from tests.desk import Desk
from workers.attempt import write_outcome
from workers.contract import Claim, EventType, Outcome, ReportedEvent, Running

T = TypeVar("T")
OWNER = "local"


class NoCluster:
    """An engine that writes down what it is given; what happens to it then is the test's to say."""

    name, address = "dask", "nowhere"

    def __init__(self, mode: str) -> None:
        self.mode, self.up = mode, True
        self.present: set[str] = set()
        self.submitted: list[str] = []
        self.forgotten: list[str] = []

    def _must_be_up(self) -> None:
        if not self.up:
            raise EngineDown("the scheduler cannot be reached")

    async def workers(self) -> set[str]:
        self._must_be_up()
        return self.present

    async def submit(self, attempt: str, address: str, needs: dict[str, int]) -> None:
        self._must_be_up()
        self.submitted.append(attempt)

    def known(self) -> set[str]:
        return set(self.submitted) - set(self.forgotten)

    async def forget(self, attempt: str) -> None:
        self.forgotten.append(attempt)


class Yard(Desk):
    """What a server does with its database, one call each."""

    def __init__(self, home: Path, mode: str = "embedded") -> None:
        super().__init__(home)
        self.loop = asyncio.Runner()
        self.engine = NoCluster(mode)
        self.jobs = JobService(self.reader, self.writer, self.files, max_queue=1000)
        self.start_anew()
        self._names = itertools.count(1)

    def start_anew(self) -> None:
        """A new server process on the same database: it remembers nothing else."""
        self.dispatcher = Dispatcher(self.reader, self.writer, Changes(), self.engine)
        self.reconciler = Reconciler(self.reader, self.writer, self.engine, self.dispatcher, self.files, 30.0)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(coroutine)

    def close(self) -> None:
        self.loop.close()
        super().close()

    # ---- what people do ----------------------------------------------------------------------------------------

    def submit(self, **fields: Any) -> str:
        """A new job; its id."""
        params = {"series": {"values": [0.0, 1.0, 0.5, 2.0, 1.0, 0.0, 1.0, 3.0, 1.0]}, "window": 3}
        request = JobRequest.model_validate({"kind": "matrix_profile", "params": params, **fields})
        answer = self.run(self.jobs.submit([request], OWNER, None, lambda jobs: Response(jobs[0].id)))
        return bytes(answer.body).decode()

    def cancel(self, job: str) -> None:
        self.run(self.jobs.cancel(job, OWNER))

    # ---- what workers do ---------------------------------------------------------------------------------------

    def join(self, threads: int = 1, cores: int | None = None, name: str | None = None) -> str:
        name = name or f"w{next(self._names)}"
        facts = {"threads": threads, "host": "here", "speed": {}, "probes": []}
        row = WorkerRow(
            id=name, engine="dask", address=f"tcp://{name}", state="up", joined_at=now(), facts=facts,
            resources={"CPU": cores or threads},
        )  # fmt: skip
        self.write(lambda db: db.merge(row) and None)
        self.engine.present.add(row.address)
        self.reconciler.hear(name, ())
        return name

    def vanish(self, worker: str) -> None:
        """The worker's process is gone, and the cluster has noticed."""
        self.engine.present.discard(f"tcp://{worker}")
        self.reconciler._heard.pop(worker, None)

    def place(self) -> list[Attempt]:
        return list(self.write(attempts.place_waiting))

    def dispatch(self) -> None:
        """A round of the dispatcher: place, and hand over to the engine."""
        self.run(self.dispatcher._round())

    def begin(self, job: str, nonce: str = "nonce") -> Attempt:
        """Place the job, and have its worker claim the attempt."""
        [attempt] = [attempt for attempt in self.place() if attempt.job_id == job]
        self.claim(attempt.id, nonce, attempt.worker_id)
        return attempt

    def minutes_pass(self) -> None:
        """Every attempt was placed and claimed long ago."""
        self.write(lambda db: [_age(attempt) for attempt in db.exec(select(Attempt)).all()] and None)

    def claim(self, attempt: str, nonce: str, worker: str) -> None:
        self.write(lambda db: attempts.claim(db, attempt, Claim(nonce=nonce, worker=worker)) and None)

    def event(self, attempt: str, nonce: str, number: int, kind: EventType = EventType.LOG, **data: Any) -> None:
        told = ReportedEvent(
            attempt=attempt, claim=nonce, number=number, at=now(), type=kind, data=data or {"message": "."}
        )
        self.write(lambda db: attempts.accept_event(db, told))

    def outcome(self, attempt: str, nonce: str, end: str, **about: Any) -> None:
        told = Outcome(attempt=attempt, claim=nonce, end=end, **about)
        self.write(lambda db: attempts.accept_outcome(db, told))

    def leave_outcome(self, attempt: Attempt, nonce: str, end: str, **about: Any) -> None:
        """The driver wrote its outcome as a file, and ended before it could tell."""
        folder = self.files.attempt(attempt.job_id, attempt.number)
        folder.mkdir(parents=True, exist_ok=True)
        write_outcome(folder / "outcome.json", Outcome(attempt=attempt.id, claim=nonce, end=end, **about))

    def to_stop(self, running: dict[str, str]) -> set[str]:
        """Which of these executions (attempt → nonce) the server's answer to a report would stop."""
        lines = [Running(attempt=attempt, claim=nonce) for attempt, nonce in running.items()]
        return set(self.read(lambda db: attempts.to_stop(db, lines)))

    def sweep(self) -> None:
        self.run(self.reconciler._sweep())

    # ---- what is so --------------------------------------------------------------------------------------------

    def job(self, job: str) -> Job:
        return self.read(lambda db: db.get_one(Job, job))

    def attempts(self, job: str) -> list[Attempt]:
        return list(self.read(lambda db: queries.attempts_of(db, job)))

    def log(self, job: str) -> list[tuple[str, dict[str, Any]]]:
        return [(event.type, event.data) for event in self.read(lambda db: queries.events_after(db, job, 0, 10_000))]

    def free(self) -> dict[str, dict[str, int]]:
        return self.read(lambda db: capabilities.free_resources(db, capabilities.workers_up(db)))

    def check(self) -> dict[str, Job]:
        """Whatever has happened, this holds. Returns the jobs."""
        return self.read(house_rules)


def _age(attempt: Attempt) -> None:
    ago = timedelta(minutes=5)
    attempt.placed_at -= ago
    attempt.claimed_at = attempt.claimed_at and attempt.claimed_at - ago


def house_rules(db: Session) -> dict[str, Job]:
    jobs = {job.id: job for job in db.exec(select(Job)).all()}
    workers = {worker.id: worker for worker in db.exec(select(WorkerRow)).all()}
    tries = db.exec(select(Attempt).order_by(Attempt.number)).all()
    leases = db.exec(select(Lease)).all()
    events = db.exec(select(Event).order_by(Event.job_id, Event.seq)).all()
    still_open = {attempt.id: attempt for attempt in tries if attempt.state != "ended"}

    for job in jobs.values():
        mine = [attempt for attempt in tries if attempt.job_id == job.id]
        live = [attempt.state for attempt in mine if attempt.state != "ended"]
        assert [attempt.number for attempt in mine] == list(range(1, job.attempt + 1))
        assert (job.finished_at is not None) == (job.state in FINAL)
        assert job.attempts_counted <= job.max_attempts
        assert job.seconds_used >= 0
        allowed = {"queued": ([],), "running": (["placed"], ["claimed"]), "cancelling": (["claimed"],)}
        assert live in allowed.get(job.state, ([], ["claimed"])), (job.state, live)
        assert (job.error is not None) == (job.state == "failed")
        assert (job.result is not None) == (job.state == "succeeded")
        if job.state == "succeeded":
            assert [attempt.end for attempt in mine].count("succeeded") == 1

        log = [event for event in events if event.job_id == job.id]
        assert [event.seq for event in log] == list(range(1, job.last_seq + 1))
        changes = [(event.data["from"], event.data["to"]) for event in log if event.type == "state"]
        assert [before for before, _ in changes] == [None, *[after for _, after in changes[:-1]]]
        assert changes[-1][1] == job.state

    assert {lease.attempt_id for lease in leases} == set(still_open)
    for attempt in still_open.values():
        assert workers[attempt.worker_id].state == "up"
    for name, worker in workers.items():
        taken = sum(lease.amount for lease in leases if lease.worker_id == name)
        assert taken <= worker.resources["CPU"]
    for worker_id, free in capabilities.free_resources(db, capabilities.workers_up(db)).items():
        assert still_open or free == workers[worker_id].resources
    return jobs
