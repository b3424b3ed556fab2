"""The reconciler: once a second it compares what the database believes with what the cluster and the workers say.

A worker is lost when its cluster no longer has it, or when it has said nothing for `worker_silence_seconds`. How long a job runs says
nothing about whether it lives (decision 6).
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path

from sqlmodel import Session

from app.capabilities.queries import workers_up
from app.control import attempts
from app.control import queries as running
from app.control.dispatcher import Dispatcher
from app.db.idempotency import KEPT, forget_old
from app.db.reader import Reader
from app.db.tables import Attempt, Job, WorkerRow
from app.db.writer import Writer
from app.engines.all import Engines
from app.engines.base import EngineDown
from app.files import Files
from app.jobs import states
from app.jobs.states import State
from app.kit.clock import now
from workers.contract import Outcome

log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
UNCLAIMED = timedelta(seconds=5)
"""A placed attempt should be claimed in milliseconds; after so long it is handed to the engine again."""
UNREPORTED = timedelta(seconds=5)
"""A claimed attempt should be in its worker's next report; missing for so long, its driver is gone."""
CLEAN_EVERY_SECONDS = 3600.0

Present = Mapping[str, set[str] | EngineDown]
"""For each engine the addresses of its workers, or why it cannot tell."""


class Reconciler:
    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        engines: Engines,
        dispatcher: Dispatcher,
        files: Files,
        silence_seconds: float,
    ) -> None:
        self._reader, self._writer, self._engines = reader, writer, engines
        self._dispatcher, self._files, self._silence = dispatcher, files, silence_seconds
        self._heard: dict[str, float] = {}
        self._running: dict[str, frozenset[str]] = {}
        self._cleaned = 0.0

    def hear(self, worker_id: str, running: Collection[str] | None = None) -> None:
        """A worker lives; and, where it said so, these attempts run there."""
        self._heard[worker_id] = time.monotonic()
        if running is not None:
            self._running[worker_id] = frozenset(running)

    async def recover(self) -> None:
        """At start-up, before the engines are up: what an earlier server left open.

        An embedded cluster died with that server, so its attempts ended with it, which does not count against a job. Workers of
        an outside cluster get the time of one silence to report.
        """

        def unit(db: Session) -> None:
            for worker in workers_up(db):
                if self._engines.embedded(worker.engine):
                    self._lost(db, worker, states.Event.SERVER_STOPPED, "The server stopped, and its cluster with it.")
                else:
                    self.hear(worker.id)

        await self._writer.run(unit)

    async def interrupt(self) -> None:
        """At shutdown, after the engines stopped: end what an embedded cluster was running. It does not count."""
        await self.recover()

    async def dismiss(self, worker_id: str) -> None:
        """A worker leaves in good order: it stopped its work, which goes on elsewhere and does not count."""

        def unit(db: Session) -> None:
            worker = db.get(WorkerRow, worker_id)
            if worker is not None and worker.state == "up":
                self._lost(db, worker, states.Event.SERVER_STOPPED, "The worker left.")

        await self._writer.run(unit)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self._sweep()
            except Exception:
                log.exception("a sweep of the reconciler failed; the next one follows")

    async def _sweep(self) -> None:
        await self._time_out()
        await self._forget_ended()
        present = await self._engines.present()
        await self._bury(present)
        await self._hand_over_again({name for name, workers in present.items() if not isinstance(workers, EngineDown)})
        if time.monotonic() - self._cleaned > CLEAN_EVERY_SECONDS:
            self._cleaned = time.monotonic()
            await self._writer.run(lambda db: forget_old(db, now() - KEPT))

    async def _time_out(self) -> None:
        def unit(db: Session) -> None:
            for job_id in late:
                job = db.get(Job, job_id)
                if job is not None and job.state in (State.QUEUED, State.RUNNING):
                    attempts.time_out(db, job)

        if late := await self._reader.run(running.overdue):
            await self._writer.run(unit)

    async def _forget_ended(self) -> None:
        """Tell the engines which of their attempts have ended. What they know is asked first: an attempt is open before it is known."""
        known = [(engine, engine.known()) for engine in self._engines.values()]
        open_now = {attempt.id for attempt in await self._reader.run(running.open_attempts)}
        for engine, attempt_ids in known:
            for attempt_id in attempt_ids - open_now:
                await engine.forget(attempt_id)

    async def _bury(self, present: Present) -> None:
        """Find the workers that are gone, and the attempts whose driver is."""
        workers = await self._reader.run(workers_up)
        holders = {(worker.engine, worker.address): worker.id for worker in workers}  # whoever joined last
        gone = {
            worker.id: self._why_gone(worker, present, holders[worker.engine, worker.address]) for worker in workers
        }
        gone = {worker_id: why for worker_id, why in gone.items() if why}
        silent = [
            attempt.id
            for attempt in await self._reader.run(running.open_attempts)
            if attempt.worker_id not in gone and self._without_driver(attempt)
        ]
        if not gone and not silent:
            return

        def unit(db: Session) -> None:
            for worker_id, why in gone.items():
                self._lost(db, db.get_one(WorkerRow, worker_id), states.Event.WORKER_LOST, str(why))
            for attempt_id in silent:
                self._end(
                    db,
                    db.get_one(Attempt, attempt_id),
                    states.Event.WORKER_LOST,
                    "The worker no longer knows the attempt.",
                )

        await self._writer.run(unit)

    def _why_gone(self, worker: WorkerRow, present: Present, holder: str) -> str | None:
        if (
            holder != worker.id
        ):  # two processes never have one address: this one was started again, in a container for instance
            return f"The worker {holder} has taken the place of {worker.id}, at the same address."
        silence = time.monotonic() - self._heard.get(worker.id, 0.0)
        there = present.get(worker.engine, set[str]())  # of an engine that is named no longer there is nobody
        if not isinstance(there, EngineDown) and worker.address not in there and silence > SWEEP_SECONDS:
            return f"The worker {worker.id} left the cluster."
        if silence > self._silence:
            return f"The worker {worker.id} said nothing for {silence:.0f} s."
        return None

    def _without_driver(self, attempt: Attempt) -> bool:
        reported = self._running.get(attempt.worker_id, frozenset())
        return (
            attempt.state == "claimed"
            and attempt.claimed_at is not None
            and now() - attempt.claimed_at > UNREPORTED
            and attempt.worker_id in self._running
            and attempt.id not in reported
        )

    async def _hand_over_again(self, up: Collection[str]) -> None:
        def query(db: Session) -> list[Attempt]:
            names = {worker.id: worker.engine for worker in workers_up(db)}
            return [attempt for attempt in running.open_attempts(db) if names.get(attempt.worker_id) in up]

        for attempt in await self._reader.run(query):
            if attempt.state == "placed" and now() - attempt.placed_at > UNCLAIMED:
                await self._dispatcher.hand_over(attempt)

    # ---- inside a write unit -----------------------------------------------------------------------------------

    def _lost(self, db: Session, worker: WorkerRow, event: states.Event, reason: str) -> None:
        worker.state, worker.left_at = "gone", now()
        db.add(worker)
        self._heard.pop(worker.id, None)
        self._running.pop(worker.id, None)
        level = logging.INFO if event is states.Event.SERVER_STOPPED else logging.WARNING
        log.log(level, "worker %s is gone: %s", worker.id, reason)
        for attempt in running.open_attempts(db, worker.id):
            self._end(db, attempt, event, reason)

    def _end(self, db: Session, attempt: Attempt, event: states.Event, reason: str) -> None:
        """End an attempt whose execution is gone: by the outcome it had still written, or as lost."""
        if attempt.state == "ended":
            return
        outcome = read_outcome(self._files.attempt(attempt.job_id, attempt.number) / "outcome.json")
        if outcome is not None and outcome.claim == attempt.claim:
            attempts.accept_outcome(db, outcome)
        else:
            # An attempt that nobody had begun is no fault of the job's.
            event = states.Event.SERVER_STOPPED if attempt.state == "placed" else event
            attempts.lose(db, attempt, event, reason)


def read_outcome(path: Path) -> Outcome | None:
    """The outcome a driver left, whole or not at all."""
    try:
        return Outcome.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        # Unreadable, cut short, or of another version: as good as none, and no reason to stop burying or starting.
        log.warning("the outcome in %s cannot be read: %s", path, fault)
        return None
