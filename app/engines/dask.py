"""The Dask engine: a scheduler with its workers as the server's children, or an outside scheduler by address."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import Client, Future, fire_and_forget

from app.engines import doors
from app.engines.base import EngineDown, value_of
from app.engines.children import RETRY_SECONDS, Child, cancel_all, keep_up, keep_workers, noted
from workers.contract import call_by_name, call_in_thread

log = logging.getLogger(__name__)
# Of a connection that breaks Dask prints a stack, and its import has just undone what was set before; what there is to know, we say.
logging.getLogger("distributed").setLevel(logging.WARNING)
logging.getLogger("distributed.client").setLevel(logging.CRITICAL)

DRIVER = "workers.attempt:execute"
SCHEDULER_SETTINGS = {
    # Retries are ours to decide (decision 4), and a worker whose process holds the GIL is not a dead one.
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "None",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    # What the pieces of a job share stays with its own worker, however many copies others fetched.
    "DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False",
    # A network that is cut for a while loses nobody: connections outlive it. What is really gone is told by its silence.
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
    # An idle cluster leaves the cores to those who compute.
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s",
}
CLIENT_SETTINGS = {"distributed": {"comm": {"timeouts": {"tcp": "300s"}}}}
"""The same for the server's own connections; defaults, which the environment may overrule."""
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical"}
"""What Dask says of tasks and workers that end, the reconciler says better."""
START_SECONDS = 30.0
ASK_SECONDS = 5.0


class DaskEngine:
    """See `app.engines.base.Engine`."""

    name = "dask"

    def __init__(self, scheduler: str, folder: Path, workers: int, threads: int, token: str | None) -> None:
        self.mode = "embedded" if scheduler == "embedded" else "outside"
        self._scheduler, self._folder, self._workers, self._threads = scheduler, folder, workers, threads
        self._token = token
        self._client: Client | None = None
        self._futures: dict[str, Future] = {}
        self._server_url = ""
        self._keeper: asyncio.Task[None] | None = None
        self._hasty: list[str] = []

    @property
    def address(self) -> str | None:
        return self._client.scheduler.address if self._up() and self._client else None

    def _up(self) -> bool:
        return self._client is not None and self._client.status == "running"

    @property
    def warnings(self) -> list[str]:
        return [*doors.of_dask(self._scheduler), *self._hasty] if self.mode == "outside" else []

    async def start(self, server_url: str) -> None:
        self._server_url = server_url
        dask.config.update_defaults(CLIENT_SETTINGS)
        for warning in self.warnings:
            log.warning(warning)
        embedded = self.mode == "embedded"
        keep = keep_up("the Dask scheduler", self._run_cluster) if embedded else self._keep_connected()
        self._keeper = asyncio.create_task(keep, name="dask-engine")

    # ---- keeping it up -----------------------------------------------------------------------------------------

    async def _run_cluster(self) -> int:
        """Start a scheduler and its workers, and return the scheduler's exit code once it has ended and all are gone."""
        async with contextlib.AsyncExitStack() as stack:
            scheduler, address = await self._start_scheduler()
            stack.push_async_callback(scheduler.stop)
            client = await self._connect(address)
            stack.push_async_callback(self._disconnect, client)
            arguments = ["dask", "--scheduler", address, "--server", self._server_url, "--threads", str(self._threads)]
            # What Dask writes aside belongs under HOME, not in a shared temporary folder.
            environment = QUIET | {"DASK_TEMPORARY_DIRECTORY": str(self._folder)}
            workers = keep_workers(self._workers, arguments, environment, self._token)
            stack.push_async_callback(cancel_all, workers)
            return await scheduler.process.wait()

    async def _start_scheduler(self) -> tuple[Child, str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        note = self._folder / "scheduler.json"
        note.unlink(missing_ok=True)
        # Without a dashboard Dask still listens for HTTP, on all addresses and a fixed port unless told otherwise.
        arguments = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        arguments += ["--scheduler-file", str(note), "--preload", "workers.lifeline"]
        child = await Child.start("dask", arguments, SCHEDULER_SETTINGS | QUIET)
        facts = await noted(child, "the Dask scheduler", note, START_SECONDS)
        return child, str(facts["address"])

    async def _keep_connected(self) -> None:
        """A client of an outside scheduler, made anew whenever the connection is lost."""
        while True:
            try:
                client = await self._connect(self._scheduler)
            except Exception as fault:  # not there, or TLS without certificates, or not a scheduler at all
                log.warning("no connection to the Dask scheduler at %s (%s); trying again", self._scheduler, fault)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                await self._ask_for_patience(client)
                while client.status == "running":
                    await asyncio.sleep(0.5)
                log.warning("the Dask scheduler at %s is gone; trying to reach it again", self._scheduler)
            finally:
                await self._disconnect(client)

    async def _ask_for_patience(self, client: Client) -> None:
        """Find out how long an outside scheduler lets a connection be silent, which is for who started it to say."""
        with contextlib.suppress(Exception):  # it is only a warning
            asked = client.run_on_scheduler(dask.config.get, "distributed.comm.timeouts.tcp")
            seconds = float(parse_timedelta(await asyncio.wait_for(asked, ASK_SECONDS)))
            said, self._hasty = self._hasty, doors.of_hasty(self._scheduler, seconds)
            for warning in self._hasty:
                if warning not in said:
                    log.warning(warning)

    async def _connect(self, address: str) -> Client:
        with dask.config.set({"distributed.comm.timeouts.connect": "10s"}):
            client = Client(address, asynchronous=True, set_as_default=False, name="tidemill")
            try:
                self._client = await client
            except BaseException:  # given up while it connects, too
                await self._disconnect(client)
                raise
        return client

    async def _disconnect(self, client: Client) -> None:
        self._client = None
        self._futures.clear()
        try:
            with contextlib.suppress(Exception):  # its scheduler may be gone already
                await asyncio.wait_for(client.close(), 5)
        finally:
            client.status = (
                "closed"  # or it would close itself again when it is collected, with nobody to wait for that
            )

    # ---- the port ----------------------------------------------------------------------------------------------

    def _running_client(self) -> Client:
        if not self._up() or self._client is None:
            raise EngineDown("the Dask scheduler cannot be reached")
        return self._client

    async def workers(self) -> set[str]:
        client = self._running_client()
        try:
            identity = await asyncio.wait_for(client.scheduler.identity(), ASK_SECONDS)
        except (OSError, TimeoutError) as fault:
            raise EngineDown(f"the Dask scheduler does not answer: {fault}") from fault
        return set(identity["workers"])

    async def submit(self, attempt: str, address: str, needs: Mapping[str, int]) -> None:
        client = self._running_client()
        earlier = self._futures.get(attempt)
        if earlier is not None and earlier.done():
            await self.forget(attempt)  # under a finished task's key Dask would give its old answer and run nothing
        future = client.submit(
            call_by_name,
            DRIVER,
            attempt,
            key=attempt,
            workers=[address],
            allow_other_workers=False,
            resources=dict(needs),
            retries=0,
            pure=False,
        )
        # The scheduler drops what no client wants: this keeps the task when our connection breaks.
        fire_and_forget(future)
        self._futures[attempt] = future

    async def ask(self, function: str, arguments: list[Any], address: str, seconds: float) -> Any:
        client = self._running_client()
        if address not in await self.workers():  # Dask itself would try to reach it until the time is over
            raise EngineDown(f"no worker at {address} is on the Dask cluster")
        call = client.run(call_in_thread, "workers.joining:answer", function, arguments, workers=[address])
        try:
            answers = await asyncio.wait_for(call, seconds)
        except TimeoutError:
            raise
        except (OSError, ValueError) as fault:  # what the function itself raised comes as an answer
            raise EngineDown(f"the worker at {address} does not answer: {fault}") from fault
        return value_of(answers[address])

    def known(self) -> set[str]:
        return set(self._futures)

    async def forget(self, attempt: str) -> None:
        future = self._futures.pop(attempt, None)
        if future is not None and self._up():
            with contextlib.suppress(OSError):
                await future.cancel(force=True)

    async def stop(self) -> None:
        if self._keeper:
            await cancel_all([self._keeper])
