"""The Ray engine: a head with workers as the server's children, or an outside cluster by address.

Ray itself runs in a child as well (`ray_driver`), so that nothing it does to its process can harm the server.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from app.engines import doors
from app.engines.base import EngineDown, value_of
from app.engines.children import RETRY_SECONDS, Child, cancel_all, keep_up, keep_workers, noted
from app.engines.line import Line
from workers.ray_patience import PATIENT

log = logging.getLogger(__name__)

START_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 75.0
"""Ray itself gives up after a minute, and says why."""
ASK_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.5
BEGIN_SECONDS: Final = 30.0
NOTE: Final = "head.json"
PATIENCE_SECONDS: Final = 15.0
"""A driver whose cluster does not answer for so long is replaced: it may hold on to a head that has been replaced."""


class RayEngine:
    """See `app.engines.base.Engine`."""

    name = "ray"

    def __init__(self, address: str, folder: Path, workers: int, threads: int, token: str | None) -> None:
        self.mode = "embedded" if address == "embedded" else "outside"
        self._cluster, self._folder, self._workers, self._threads = address, folder, workers, threads
        self._token = token
        self._line: Line | None = None
        self._submitted: dict[str, asyncio.Task[None]] = {}
        self._server_url = ""
        self._keeper: asyncio.Task[None] | None = None

    @property
    def address(self) -> str | None:
        return str(self._line.ready) if self._line else None

    @property
    def warnings(self) -> list[str]:
        return doors.of_ray(self.address or self._cluster) if self.mode == "outside" else []

    async def start(self, server_url: str) -> None:
        self._server_url = server_url
        for warning in self.warnings:
            log.warning(warning)
        embedded = self.mode == "embedded"
        keep = keep_up("the Ray head", self._run_cluster) if embedded else self._keep_connected(self._cluster, {})
        self._keeper = asyncio.create_task(keep, name="ray-engine")

    # ---- keeping it up -----------------------------------------------------------------------------------------

    async def _run_cluster(self) -> int:
        """Start a head and its workers, and return the head's exit code once it has ended and all are gone."""
        async with contextlib.AsyncExitStack() as stack:
            head = await self._start_head()
            stack.push_async_callback(head.stop)
            facts = await noted(head, "the Ray head", self._folder / NOTE, START_SECONDS)
            address, environment = facts["address"], facts["environment"]
            connecting = asyncio.create_task(self._keep_connected(address, environment), name="ray-driver")
            stack.push_async_callback(cancel_all, [connecting])
            arguments = ["ray", "--address", address, "--server", self._server_url, "--threads", str(self._threads)]
            workers = keep_workers(self._workers, arguments, environment, self._token)
            stack.push_async_callback(cancel_all, workers)
            return await head.process.wait()

    async def _start_head(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            "--cpus",
            str(self._workers * self._threads),
            "--folder",
            str(self._folder.resolve()),
            "--lifeline",
        ]
        return await Child.start("workers.ray_head", arguments, {})

    async def _keep_connected(self, address: str, environment: Mapping[str, str]) -> None:
        """A driver on the cluster, made anew whenever it ends or gets no answers."""
        environment = {name: os.environ.get(name, value) for name, value in PATIENT.items()} | dict(environment)
        while True:
            try:
                line = await Line.open("app.engines.ray_driver", ["--address", address], environment, CONNECT_SECONDS)
            except (EngineDown, TimeoutError, OSError, ValueError) as fault:
                why = fault if str(fault) else f"no answer within {CONNECT_SECONDS:.0f} s"
                log.warning("no connection to the Ray cluster at %s (%s); trying again%s", address, why, self._advice)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._line = line
            if address == "auto":  # only now is it known where that is
                for warning in self.warnings:
                    log.warning(warning)
            try:
                await self._until_silent(line)
            finally:
                self._line = None
                await cancel_all(list(self._submitted.values()))
                self._submitted.clear()
                await line.close()

    async def _until_silent(self, line: Line) -> None:
        """Return when the driver has ended, or has had no answer from its cluster for too long."""
        answered = time.monotonic()
        while time.monotonic() - answered < PATIENCE_SECONDS and not line.broken:
            with contextlib.suppress(EngineDown, TimeoutError):
                await line.ask({"op": "workers"}, ASK_SECONDS)
                answered = time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
        log.warning("the Ray cluster at %s is lost", line.ready)

    @property
    def _advice(self) -> str:
        """Ray takes a driver in only through a node on the driver's own machine."""
        if self.mode == "embedded":
            return ""
        return (
            f". A node of that cluster must run on this machine too: ray start --address={self._cluster} --num-cpus=0"
        )

    # ---- the port ----------------------------------------------------------------------------------------------

    def _running_line(self) -> Line:
        if self._line is None:
            raise EngineDown("the Ray cluster cannot be reached")
        return self._line

    async def workers(self) -> set[str]:
        line = self._running_line()
        try:
            return set(await line.ask({"op": "workers"}, ASK_SECONDS))
        except TimeoutError as fault:
            raise EngineDown("the Ray cluster does not answer") from fault

    async def submit(self, attempt: str, address: str, needs: Mapping[str, int]) -> None:
        """The actor holds what it needs for as long as it lives, so `needs` are the database's to count."""
        line = self._running_line()
        earlier = self._submitted.get(attempt)
        if earlier is None or earlier.done():
            self._submitted[attempt] = asyncio.create_task(self._hand_over(line, attempt, address), name=attempt)

    async def _hand_over(self, line: Line, attempt: str, address: str) -> None:
        try:
            await line.ask({"op": "execute", "worker": address, "attempt": attempt}, BEGIN_SECONDS)
        except (EngineDown, TimeoutError) as fault:  # the reconciler sees that nobody claims it
            log.warning("attempt %s did not reach its worker at %s: %s", attempt, address, fault)

    async def ask(self, function: str, arguments: list[Any], address: str, seconds: float) -> Any:
        question = {"op": "ask", "worker": address, "function": function, "arguments": arguments}
        return value_of(await self._running_line().ask(question, seconds))

    def known(self) -> set[str]:
        return set(self._submitted)

    async def forget(self, attempt: str) -> None:
        if handing_over := self._submitted.pop(attempt, None):
            await cancel_all([handing_over])

    async def stop(self) -> None:
        if self._keeper:
            await cancel_all([self._keeper])
