"""Jobs, workers and attempts on a real database, with everything of the control plane but HTTP and the cluster itself."""

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Response
from sqlmodel import Session, select

from app.capabilities import queries as capabilities
from app.control import attempts
from app.control import queries as running
from app.control.dispatcher import Dispatcher
from app.control.reconciler import Reconciler
from app.db.tables import Attempt, Event, Job, Lease, WorkerRow
from app.engines.all import Engines
from app.engines.base import EngineDown
from app.jobs import queries
from app.jobs.admission import Admission
from app.jobs.requests import REQUESTS
from app.jobs.service import JobService
from app.jobs.states import FINAL
from app.jobs.views import NO_PROGRESS
from app.kit.changes import Changes
from app.kit.clock import now
from app.kit.ids import new_id
from app.training.asking import Asking
from tests.desk import Desk
from workers.attempt import write_outcome
from workers.contract import Claim, EventType, Outcome, Probe, ReportedEvent, Running
from workers.training.rules import DEFAULT_ALLOW

T = TypeVar("T")
OWNER = "local"


class NoCluster:
    """An engine that writes down what it is given; what happens to it then is the test's to say."""

    def __init__(self, mode: str, name: str = "dask") -> None:
        self.name, self.mode, self.up = name, mode, True
        self.address: str | None = "nowhere"
        self.warnings: list[str] = []
        self.present: set[str] = set()
        self.submitted: list[str] = []
        self.needs: dict[str, dict[str, int]] = {}
        self.forgotten: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, Any] = {}

    def _must_be_up(self) -> None:
        if not self.up:
            raise EngineDown("the scheduler cannot be reached")

    async def workers(self) -> set[str]:
        self._must_be_up()
        return self.present

    async def submit(self, attempt: str, address: str, needs: dict[str, int]) -> None:
        self._must_be_up()
        self.submitted.append(attempt)
        self.needs[attempt] = dict(needs)

    async def ask(self, function: str, arguments: list[Any], address: str, seconds: float) -> Any:
        self._must_be_up()
        self.asked.append((function, address))
        answer = self.answers.get(address)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def known(self) -> set[str]:
        return set(self.submitted) - set(self.forgotten)

    async def forget(self, attempt: str) -> None:
        self.forgotten.append(attempt)


class Yard(Desk):
    """What a server does with its database, one call each."""

    def __init__(self, home: Path, mode: str = "embedded", ray: str | None = None) -> None:
        """With a Dask cluster of this mode, and a Ray cluster where `ray` names its mode."""
        super().__init__(home)
        self.loop = asyncio.Runner()
        self.engine = NoCluster(mode)
        self.engines = Engines([self.engine, *([NoCluster(ray, "ray")] if ray else [])])
        asking = Asking(self.reader, self.engines, self.files, DEFAULT_ALLOW)
        self.jobs = JobService(self.reader, self.writer, Admission(self.files), asking, max_queue=1000)
        self.start_anew()
        self._names = itertools.count(1)

    def start_anew(self) -> None:
        """A new server process on the same database: it remembers nothing else."""
        self.changes = Changes()
        self.dispatcher = Dispatcher(self.reader, self.writer, self.changes, self.engines)
        self.reconciler = Reconciler(self.reader, self.writer, self.engines, self.dispatcher, self.files, 30.0)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(coroutine)

    def close(self) -> None:
        self.loop.close()
        super().close()

    # ---- what people do ----------------------------------------------------------------------------------------

    def submit(self, **fields: Any) -> str:
        """A new job; its id."""
        params = {"series": {"values": [0.0, 1.0, 0.5, 2.0, 1.0, 0.0, 1.0, 3.0, 1.0]}, "window": 3}
        request = REQUESTS.validate_python({"kind": "matrix_profile", "params": params, **fields})
        answer = self.run(self.jobs.submit([request], OWNER, None, lambda jobs: Response(jobs[0].id)))
        return bytes(answer.body).decode()

    def queue(
        self, kind: str = "mpdist", priority: int = 0, max_attempts: int = 3, params: Any = None, **plan: Any
    ) -> str:
        """A waiting job with this plan, as if it had been submitted; its id."""
        job = Job(
            id=new_id("job"), owner=OWNER, kind=kind, state="queued", phase="waiting_for_worker", priority=priority,
            max_attempts=max_attempts,
            progress=NO_PROGRESS, params=params or {}, execution={}, labels={}, created_at=now(),
            plan={"backend": "cpu", "device": "cpu", "devices": None, "reasons": [], **plan},
        )  # fmt: skip

        def unit(db: Session) -> str:
            db.add(job)
            db.flush()
            queries.append_event(db, job, "state", {"from": None, "to": "queued"})
            return job.id

        return self.write(unit)

    def cancel(self, job: str) -> None:
        self.run(self.jobs.cancel(job, OWNER))

    # ---- what workers do ---------------------------------------------------------------------------------------

    def join(
        self,
        threads: int = 1,
        cores: int | None = None,
        name: str | None = None,
        engine: str = "dask",
        gpus: Sequence[str] = (),
        memory_bytes: int = 0,
        address: str | None = None,
        **evidence: str,
    ) -> str:
        """A worker joins. `gpus`: the ids of its devices, by index; `evidence`: what its probes proved."""
        name = name or f"w{next(self._names)}"
        if gpus:
            evidence = {"cuda": "executed", **evidence}
        facts = {
            "threads": threads,
            "host": "here",
            "speed": {},
            "memory_bytes": memory_bytes,
            "probes": [proof(probe, proved) for probe, proved in evidence.items()],
            "gpus": [{"index": index, "uuid": device} for index, device in enumerate(gpus)],
        }
        row = WorkerRow(
            id=name, engine=engine, address=address or f"tcp://{name}", state="up", joined_at=now(), facts=facts,
            resources={"CPU": cores or threads, **({"GPU": len(gpus)} if gpus else {})},
        )  # fmt: skip
        self.write(lambda db: db.merge(row) and None)
        self.engines[engine].present.add(row.address)
        self.reconciler.hear(name, ())
        return name

    def vanish(self, worker: str) -> None:
        """The worker's process is gone, and the cluster has noticed."""
        for engine in self.engines.values():
            engine.present.discard(f"tcp://{worker}")
        self.reconciler._heard.pop(worker, None)

    def place(self) -> list[Attempt]:
        return list(self.write(lambda db: attempts.place_waiting(db, self.engines.up())))

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
        """Which of these executions, or pieces, (attempt → nonce) the server's answer to a report would stop."""
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
        return self.read(free)

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

    holding = {name for name, attempt in still_open.items() if jobs[attempt.job_id].kind != "probe"}
    assert {lease.attempt_id for lease in leases} == holding
    for attempt in still_open.values():
        assert workers[attempt.worker_id].state == "up"
    for name, worker in workers.items():
        held = [lease for lease in leases if lease.worker_id == name]
        assert sum(lease.amount for lease in held if lease.resource == "CPU") <= worker.resources["CPU"]
    by_id = {worker.id: capabilities.gpus(worker) for worker in workers.values()}
    devices = [by_id[lease.worker_id][int(lease.resource[4:])] for lease in leases if lease.resource != "CPU"]
    assert len(set(devices)) == len(devices), "a device belongs to one attempt"
    for worker_id, left in free(db).items():
        assert still_open or left == workers[worker_id].resources
    return jobs


def free(db: Session) -> dict[str, dict[str, int]]:
    return {candidate.worker_id: dict(candidate.free) for candidate in running.candidates(db)}


def proof(probe: str, evidence: str, age_seconds: float = 0.0) -> dict[str, Any]:
    """A probe as a worker tells of it."""
    at = now() - timedelta(seconds=age_seconds)
    found = Probe(name=probe, evidence=evidence, detail=f"{probe} is {evidence}", seconds=0.1, at=at)
    return found.model_dump(mode="json")
