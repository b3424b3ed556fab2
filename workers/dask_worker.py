"""A worker on a Dask cluster: `python -m workers dask --scheduler tcp://… --server http://…`.

One process, no nanny. It joins the scheduler, warms its nursery, probes itself, and only then introduces itself to the server, so a worker
the server knows is a worker that can compute at once. It outlives its scheduler: when that goes, it starts itself anew and waits for it.
"""

import asyncio
import contextlib
import logging
import os
import socket
import sys
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import dask
from distributed import Client, Status, Worker

from workers import agent as agents
from workers import hardware, host, joining, probe
from workers.contract import call_by_name
from workers.failures import CannotJoin
from workers.probes.cpu import ON_THIS_WORKER

log = logging.getLogger(__name__)

CHECK_SECONDS = 30.0
WAIT_SECONDS: Final = 2.0
SAY_SECONDS: Final = 60.0
DASK_SETTINGS = {
    "distributed.worker.daemon": False,
    # What the children hold is not the worker's to pause for; our own limits judge memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # What computes is in children, so there is nothing to sample here a hundred times a second; nor need the loop be felt fifty times.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    # Samples do not become much smaller, and trying costs more than sending them within a machine or a rack.
    "distributed.comm.compression": None,
    # A link that is silent for a minute is not a worker that is gone: the server judges that, by reports. (What was sent into the
    # silence is sent again at growing intervals, of up to as long as it has lasted.)
    "distributed.comm.timeouts.tcp": "300s",
    "distributed.comm.timeouts.connect": "90s",
}
SPARE_THREADS = 32
"""Of Dask's pool, which starts them as they are needed."""


@dataclass(frozen=True)
class Options:
    scheduler: str
    server: str
    token: str | None
    threads: int
    gpus: int
    port: int
    lifeline: bool


def own_address(scheduler: str) -> str:
    """This machine's address as the scheduler sees it, so that a worker listens there and nowhere else: whoever reaches a
    Dask worker can run code on it. Raises OSError while the scheduler's name means nothing, CannotJoin where it never will."""
    try:
        target = urlsplit(scheduler)
        host_name, port = target.hostname, target.port
    except ValueError:  # a port beyond all ports
        host_name = port = None
    if not host_name or not port:
        raise CannotJoin(
            f"--scheduler is {scheduler!r}, which is no address of a Dask scheduler, as tcp://10.0.0.1:8786."
        )
    family, _, _, _, address = socket.getaddrinfo(host_name, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe_socket:
        probe_socket.connect(address)  # sends nothing; it only chooses the route
        return str(probe_socket.getsockname()[0])


async def _own_address(scheduler: str) -> str:
    """The same, once the name is known and there is a route: those of a container that is down are not."""
    while True:
        try:
            return await joining.in_thread(partial(own_address, scheduler))
        except OSError:
            await asyncio.sleep(WAIT_SECONDS)


class Colleague(Worker):  # type: ignore[misc]  # Dask says nothing of its types
    """Dask's worker, which says that it closes before it waits for what runs on it, and knows whether it was told to."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.closes = asyncio.Event()
        self.retired = False
        """By somebody who does not want it back, unlike a scheduler that ends or has lost sight of it."""

    async def close(self, *arguments: Any, **named: Any) -> Any:
        if not self.closes.is_set():
            self.retired = self.status == Status.closing_gracefully
            self.closes.set()
        return await super().close(*arguments, **named)


async def run(options: Options, machine: host.Host) -> bool:
    """Join, serve, and leave on SIGTERM, on SIGINT, when the scheduler goes, or when the lifeline is cut.

    Returns whether the scheduler went, and this worker was not told to leave.
    """
    host.set_current_host(machine)
    # Without a server, killed perhaps, there is nobody to report to: end at once and take the children along.
    end_at_once = partial(_end_at_once, machine) if options.lifeline else None
    forsaken = asyncio.Event()
    try:
        await joining.live(partial(_serve, options, machine, forsaken), end_at_once)
    finally:
        machine.close()
    return forsaken.is_set()


async def _serve(
    options: Options, machine: host.Host, forsaken: asyncio.Event, introduced: asyncio.Event, leave: asyncio.Event
) -> None:
    name = f"wk_{uuid.uuid4().hex[:16]}"
    resources = {"CPU": options.threads, "GPU": options.gpus}
    waiting = asyncio.create_task(_say_that_it_waits(options.scheduler))
    try:
        address = await _own_address(options.scheduler)
        with dask.config.set(DASK_SETTINGS):
            async with Colleague(
                options.scheduler,
                name=name,
                # Room is what `resources` say, and what computes waits its turn in the host's slot. The threads beyond keep drivers that
                # came early, jobs that probe, and pieces that wait from being in one another's way.
                nthreads=options.threads + SPARE_THREADS,
                host=address,
                port=options.port,
                dashboard_address=f"{address}:0",
                resources={**resources, "MEMORY": hardware.memory_bytes()},
                memory_limit=0,
                dashboard=False,
            ) as worker:
                waiting.cancel()
                newcomer = joining.Newcomer(name, "dask", worker.address, options.server, options.token, resources)
                check = partial(_check_dask, options.scheduler, worker.address, asyncio.get_running_loop())
                agent = await joining.in_thread(lambda: joining.introduce(newcomer, machine, check))
                introduced.set()
                leaving = asyncio.ensure_future(leave.wait())
                try:
                    closing = asyncio.ensure_future(worker.closes.wait())
                    await asyncio.wait({leaving, closing}, return_when=asyncio.FIRST_COMPLETED)
                    if not leave.is_set() and not worker.retired:
                        forsaken.set()
                finally:
                    await asyncio.to_thread(agent.close)
    finally:
        waiting.cancel()


async def _say_that_it_waits(scheduler: str) -> None:
    pause = WAIT_SECONDS
    while True:
        await asyncio.sleep(pause)
        log.warning("waiting for the Dask scheduler at %s", scheduler)
        pause = SAY_SECONDS


def _end_at_once(machine: host.Host) -> None:
    agents.mark_closing()
    machine.close()
    os._exit(0)


def _check_dask(scheduler: str, address: str, loop: asyncio.AbstractEventLoop) -> probe.Finding:
    """Have the scheduler run a task on this very worker. Called from a thread beside the worker's loop."""

    async def compute() -> list[str]:
        async with Client(scheduler, asynchronous=True, set_as_default=False) as client:
            future = client.submit(call_by_name, ON_THIS_WORKER, workers=[address], pure=False)
            return list(await asyncio.wait_for(future, CHECK_SECONDS))

    names = asyncio.run_coroutine_threadsafe(compute(), loop).result(CHECK_SECONDS * 2)
    return (
        "executed",
        f"the scheduler at {scheduler} had {', '.join(names)} run here, with the answers of STUMPY's documentation",
    )


def main(options: Options, machine: host.Host) -> int:
    """Run a worker whose nursery is `machine`'s, until it is told to leave. Returns the exit code; raises Refused, CannotJoin."""
    forsaken = False
    with contextlib.suppress(KeyboardInterrupt):
        forsaken = asyncio.run(run(options, machine))
    # One that is tied to somebody's life is started again by them, with another scheduler's address perhaps.
    if forsaken and not options.lifeline:
        log.warning("the Dask scheduler at %s is gone; starting again, and waiting for it", options.scheduler)
        start_again()
    return 0


def start_again() -> NoReturn:
    """The same command in the same process: nothing is left of the threads and tasks that the old cluster gave it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command again
