"""A server's life: what starts when, and what stops before what."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine

from app.capabilities.readiness import what_is_missing
from app.control.queries import engines_at_work, open_attempts
from app.db import idempotency
from app.services import Services

log = logging.getLogger(__name__)

READY_LOOK_SECONDS = 0.1


class Life:
    """Starts a house's tasks, and stops them in order. `leave` may be called while the door is still open; `end` calls it if not."""

    def __init__(self, house: Services) -> None:
        self._house = house
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    async def start(self, when_ready: Callable[[], None]) -> None:
        """Open the database's writer, take stock of what an earlier server left, and bring the cluster up in the background."""
        house = self._house
        house.changes.bind()
        house.writer.start()
        await house.writer.run(idempotency.forget_running)
        await house.datasets.sweep()
        await house.sources.sweep()
        await house.jobs.sweep()
        await house.reconciler.recover()
        self._run("starting", self._become_ready(when_ready))
        self._run("dispatching", house.dispatcher.run())
        self._run("hastening", house.dispatcher.hasten_stops())
        self._run("reconciling", house.reconciler.run())
        self._run("probing", house.probing.run())

    async def _become_ready(self, when_ready: Callable[[], None]) -> None:
        # Workers call in while the cluster comes up, so the socket is listening already.
        await self._house.engines.start(self._house.settings.public_url or self._house.settings.url)
        while missing := await what_is_missing(self._house):
            log.debug("not ready: %s", "; ".join(missing))
            await asyncio.sleep(READY_LOOK_SECONDS)
        when_ready()

    def leave(self) -> Awaitable[None]:
        """Place nothing more, let what runs finish for a while, then stop the cluster; all while workers can still report.

        Asked a second time, it waits for nothing more.
        """
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(), name="leaving")
        else:
            self._hurry.set()
        return asyncio.shield(self._leaving)

    async def _leave(self) -> None:
        house = self._house
        house.stopping.set()
        await self._stop("starting", "dispatching", "hastening", "probing")
        await self._drain(house.settings.drain_seconds)
        engines = await house.reader.run(engines_at_work)
        if left := [name for name in engines if house.engines.embedded(name)]:
            log.info("stopping %d running job(s); they run again after the next start", len(left))
        # What ends from here on was ended by us, and no longer counts as a worker lost.
        await self._stop("reconciling")
        await house.engines.stop()

    async def _drain(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while await self._house.reader.run(open_attempts) and asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), READY_LOOK_SECONDS)
                return

    async def end(self) -> None:
        """Leave, settle what the cluster could not report any more, and close the database."""
        if self._leaving is None:
            await self.leave()
        else:
            await self._leaving
        await self._house.reconciler.interrupt()
        await asyncio.to_thread(self._house.writer.close)

    # ---- tasks -------------------------------------------------------------------------------------------------

    def _run(self, name: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_tell_death)
        self._tasks[name] = task

    async def _stop(self, *names: str) -> None:
        tasks = [self._tasks.pop(name) for name in names if name in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell_death(task: asyncio.Task[None]) -> None:
    """A task that dies of a fault says so; nobody else would."""
    if not task.cancelled() and (fault := task.exception()):
        log.error("the server's task %s died; restart the server", task.get_name(), exc_info=fault)
