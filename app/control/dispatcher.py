"""The dispatcher: places waiting jobs on workers with room, and hands the attempts to the engine.

The database places; the engine only runs. A crash between the two is harmless: an attempt that nobody claims is handed over again
under the same key (decision 4).
"""

import asyncio
import contextlib
import logging

from app.control import attempts
from app.control import queries as running
from app.db.reader import Reader
from app.db.tables import Attempt, WorkerRow
from app.db.writer import Writer
from app.engines.all import Engines
from app.engines.base import EngineDown
from app.jobs import queries
from app.kit.changes import Changes

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
NUDGE_SECONDS = 2.0


class Dispatcher:
    def __init__(self, reader: Reader, writer: Writer, changes: Changes, engines: Engines) -> None:
        self._reader, self._writer, self._changes, self._engines = reader, writer, changes, engines

    async def hasten_stops(self) -> None:
        """Have workers report at once when something of theirs must stop, until cancelled.

        Their next report would tell them anyway, within a second; this only makes a cancel quicker, so a failure is no matter.
        """
        with self._changes.listen(queries.STOP_TOPIC) as changed:
            while True:
                await changed.wait()
                changed.clear()
                try:
                    workers = await self._reader.run(running.workers_with_stops)
                    asked = [
                        self._engines[engine].ask("workers.agent:nudge", [], address, NUDGE_SECONDS)
                        for engine, address in workers
                        if engine in self._engines
                    ]
                    await asyncio.gather(*asked, return_exceptions=True)
                except Exception:
                    log.exception("a stop could not be hastened; the worker's next report brings it")

    async def run(self) -> None:
        """Place jobs whenever the queue or the free slots change, until cancelled."""
        with self._changes.listen(queries.QUEUE_TOPIC) as changed:
            while True:
                changed.clear()
                try:
                    await self._round()
                except Exception:
                    log.exception("a round of the dispatcher failed; the next one follows")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), LOOK_SECONDS)

    async def _round(self) -> None:
        up = self._engines.up()
        if not up or not await self._reader.run(queries.waiting):
            return
        for attempt in await self._writer.run(lambda db: attempts.place_waiting(db, up)):
            await self.hand_over(attempt)

    async def hand_over(self, attempt: Attempt) -> None:
        """Give a placed attempt to the engine; where that fails now, the reconciler does it again."""
        worker, needs = await self._reader.run(
            lambda db: (db.get_one(WorkerRow, attempt.worker_id), running.needs(db, attempt))
        )
        try:
            await self._engines[worker.engine].submit(attempt.id, worker.address, needs)
        except EngineDown as down:
            log.warning("attempt %s could not be handed over: %s", attempt.id, down)
