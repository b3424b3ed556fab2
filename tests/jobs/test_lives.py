"""Any order of submitting, placing, claiming, reporting, cancelling and losing, on a real database: no job is lost, none runs twice
to an end, and no slot leaks. What holds after every step is in `yard.house_rules`.
"""

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.control import attempts
from app.control.attempts import ClaimRefused
from app.db.tables import Attempt, Job, WorkerRow
from app.jobs.problems import JobIsFinal
from app.jobs.states import FINAL
from tests.jobs.yard import Yard
from workers.contract import EventType

ENDS = {
    "succeeded": {"summary": {"motif": None}},
    "failed": {"error": {"type": "/problems/internal"}},
    "stopped": {},
    "lost": {},
}


def state_after(end: str, job: Job) -> str:
    """What becomes of a running job whose attempt ends so."""
    if end == "lost":
        return "queued" if job.attempts_counted + 1 < job.max_attempts else "failed"
    return {"succeeded": "succeeded", "failed": "failed", "stopped": "queued"}[end]


pick = st.randoms(use_true_random=False)
backends = st.sampled_from(["cpu", "dask", "ray"])


class Lives(RuleBasedStateMachine):
    """The server, its people and its workers, each doing whatever it may do at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="yard"))
        self.yard = Yard(self.home / "home", ray="embedded")
        self.nonces = (f"nonce{i}" for i in itertools.count())
        self.placed: list[tuple[str, str]] = []
        self.granted: dict[str, tuple[str, str]] = {}
        self.finals: dict[str, dict] = {}
        self.numbers: dict[str, int] = {}

    def teardown(self) -> None:
        self.yard.close()
        shutil.rmtree(self.home)

    def attempt(self, attempt: str) -> tuple[Attempt, Job]:
        return self.yard.read(lambda db: ((a := db.get_one(Attempt, attempt)), db.get_one(Job, a.job_id)))

    def execution(self, chance) -> tuple[str, str, str]:
        """One of those that were ever granted, mostly one that still runs."""
        running = [
            attempt for (attempt,) in self.yard.look("SELECT id FROM attempt WHERE state = 'claimed' ORDER BY id")
        ]
        attempt = chance.choice(running) if running and chance.random() < 0.7 else chance.choice(list(self.granted))
        return attempt, *self.granted[attempt]

    def running(self, attempt: str, nonce: str) -> bool:
        """Whether this execution is the one that counts."""
        row, _ = self.attempt(attempt)
        return (row.state, row.claim) == ("claimed", nonce)

    @initialize(jobs=st.integers(1, 3), cores=st.integers(1, 2))
    def a_day_begins(self, jobs, cores):
        self.yard.join(threads=1, cores=cores)
        self.yard.join(threads=1, cores=1)
        for _ in range(jobs):
            self.yard.submit(max_attempts=2)
        self.place_and_claim()

    # ---- people ------------------------------------------------------------------------------------------------

    @rule(priority=st.sampled_from([-1, 0, 1]), max_attempts=st.integers(1, 2), backend=backends)
    def submit(self, priority, max_attempts, backend):
        self.yard.queue(priority=priority, max_attempts=max_attempts, backend=backend)

    @precondition(lambda self: self.yard.look("SELECT 1 FROM job"))
    @rule(chance=pick)
    def cancel(self, chance):
        jobs = list(self.yard.check().values())
        job = chance.choice([job for job in jobs if job.state not in FINAL or chance.random() < 0.1] or jobs)
        try:
            self.yard.cancel(job.id)
        except JobIsFinal:
            assert job.state in FINAL
        else:
            assert self.yard.job(job.id).state in ("cancelling", "cancelled")

    # ---- the server --------------------------------------------------------------------------------------------

    @rule()
    def place(self):
        before = self.yard.check()
        for attempt in self.yard.place():
            self.placed.append((attempt.id, attempt.worker_id))
            chosen = before[attempt.job_id]
            assert chosen.state == "queued"
        engine_of = dict(self.yard.look("SELECT id, engine FROM worker"))
        room = {engine_of[worker] for worker, free in self.yard.free().items() if free["CPU"] >= 1}
        for job in self.yard.check().values():
            if job.state == "queued":
                assert not (room if job.plan["backend"] == "cpu" else room & {job.plan["backend"]})

    @precondition(lambda self: self.yard.look("SELECT 1 FROM job WHERE state IN ('queued', 'running')"))
    @rule(chance=pick)
    def time_runs_out(self, chance):
        job = chance.choice([job for job in self.yard.check().values() if job.state in ("queued", "running")])

        def unit(db):
            row = db.get_one(Job, job.id)
            row.timeout_seconds = 0.001
            attempts.time_out(db, row)

        self.yard.write(unit)
        assert self.yard.job(job.id).state == "failed"

    def restart(self):
        """kill -9 and a new server: the embedded cluster is gone with the old one."""
        self.yard.start_anew()
        self.yard.run(self.yard.reconciler.recover())
        assert not self.yard.look("SELECT 1 FROM attempt WHERE state <> 'ended'")
        assert not self.yard.look("SELECT 1 FROM job WHERE state IN ('running', 'cancelling')")

    # ---- workers -----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.yard.look("SELECT 1 FROM worker WHERE state = 'up'")) < 3)
    @rule(cores=st.integers(1, 2), engine=st.sampled_from(["dask", "ray"]))
    def join(self, cores, engine):
        self.yard.join(threads=1, cores=cores, engine=engine)

    @precondition(lambda self: self.yard.look("SELECT 1 FROM worker WHERE state = 'up'"))
    @rule(chance=pick, how=st.sampled_from(["dies", "leaves", "is the server's"]), comes_back=st.booleans())
    def go(self, chance, how, comes_back):
        worker = chance.choice([name for (name,) in self.yard.look("SELECT id FROM worker WHERE state = 'up'")])
        if how == "dies":
            self.yard.vanish(worker)
            self.yard.sweep()
        elif how == "leaves":
            self.yard.run(self.yard.reconciler.dismiss(worker))
        else:
            self.restart()
        assert self.yard.read(lambda db: db.get_one(WorkerRow, worker)).state == "gone"
        if comes_back:
            self.yard.join(name=worker, engine=self.yard.read(lambda db: db.get_one(WorkerRow, worker).engine))

    @rule()
    def place_and_claim(self):
        """What nearly always happens: what is placed is claimed a moment later."""
        self.place()
        for attempt, worker in self.placed:
            if self.attempt(attempt)[0].state == "placed":
                self.granted[attempt] = (next(self.nonces), worker)
                self.yard.claim(attempt, *self.granted[attempt])

    @precondition(lambda self: self.placed)
    @rule(chance=pick, right=st.sampled_from([True, True, True, False]))
    def claim(self, chance, right):
        attempt, worker = chance.choice(self.placed[-3:])
        row, job = self.attempt(attempt)
        nonce = next(self.nonces)
        try:
            self.yard.claim(attempt, nonce, worker if right else "another")
        except ClaimRefused:
            assert not right or row.state != "placed" or job.state != "running"
        else:
            assert right
            assert (row.state, job.state) == ("placed", "running")
            assert attempt not in self.granted, "one claim for each attempt"
            self.granted[attempt] = (nonce, worker)

    @precondition(lambda self: self.granted)
    @rule(chance=pick)
    def claim_again(self, chance):
        """The answer to a claim got lost, and the same execution asks again."""
        attempt, nonce, worker = self.execution(chance)
        if self.running(attempt, nonce):
            self.yard.claim(attempt, nonce, worker)
        else:
            with pytest.raises(ClaimRefused):
                self.yard.claim(attempt, nonce, worker)

    @precondition(lambda self: self.granted)
    @rule(chance=pick, right=st.booleans(), again=st.booleans(), kind=st.sampled_from(["log", "phase", "progress"]))
    def report(self, chance, right, again, kind):
        attempt, nonce, _ = self.execution(chance)
        _, job = self.attempt(attempt)
        number = self.numbers.get(attempt, 0) + (not again)
        counts = right and not again and self.running(attempt, nonce)
        data = {"log": {"message": "."}, "phase": {"phase": "computing"}, "progress": {"fraction": 0.5}}[kind]
        self.yard.event(attempt, nonce if right else "forged", number, EventType(kind), **data)
        if counts:
            self.numbers[attempt] = number
        logged = self.yard.job(job.id).last_seq - job.last_seq
        assert logged == (counts and job.state not in FINAL)

    @precondition(lambda self: self.granted)
    @rule(chance=pick, right=st.sampled_from([True, True, False]), end=st.sampled_from(list(ENDS)))
    def end(self, chance, right, end):
        attempt, nonce, _ = self.execution(chance)
        _, before = self.attempt(attempt)
        counts = right and self.running(attempt, nonce)
        self.yard.outcome(attempt, nonce if right else "forged", end, **ENDS[end])
        row, after = self.attempt(attempt)
        if not counts:
            assert after == before
            return
        assert (row.state, row.end) == ("ended", "WorkerLost" if end == "lost" else end)
        if before.state == "running":
            assert after.state == state_after(end, before)
        if before.state == "cancelling":
            assert after.state == "cancelled"

    @precondition(lambda self: self.granted)
    @rule(chance=pick, end=st.sampled_from(list(ENDS)))
    def end_untold(self, chance, end):
        """The outcome is on the disk, and the worker dies before it could tell."""
        attempt, nonce, worker = self.execution(chance)
        row, job = self.attempt(attempt)
        if not self.running(attempt, nonce):
            return
        self.yard.leave_outcome(row, nonce, end, **ENDS[end])
        self.yard.vanish(worker)
        self.yard.sweep()
        row, after = self.attempt(attempt)
        assert (row.state, row.end) == ("ended", "WorkerLost" if end == "lost" else end)
        if job.state == "running":
            assert after.state == state_after(end, job)

    # ---- always ------------------------------------------------------------------------------------------------

    @invariant()
    def the_house_rules_hold(self):
        for name, job in self.yard.check().items():
            if job.state in FINAL:
                told = job.model_dump(exclude={"seconds_used"})
                assert self.finals.setdefault(name, told) == told, "final means final"

    @invariant()
    def what_must_stop_is_told_so(self):
        known = {attempt: nonce for attempt, (nonce, _) in self.granted.items()}
        goes_on = self.yard.look(
            "SELECT a.id, a.claim FROM attempt a JOIN job j ON j.id = a.job_id WHERE a.state = 'claimed' AND j.state = 'running'"
        )
        assert goes_on == [(attempt, known[attempt]) for attempt, _ in goes_on]
        assert self.yard.to_stop(known) == known.keys() - {attempt for attempt, _ in goes_on}
        assert self.yard.to_stop(dict.fromkeys(known, "forged")) == known.keys()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
