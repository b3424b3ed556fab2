"""A worker on a Dask cluster: `python -m workers dask --scheduler tcp://… --server http://…`.

One process, no nanny: whoever started it starts it again. It joins the scheduler, warms its nursery, probes itself, and only
then introduces itself to the server, so a worker the server knows is a worker that can compute at once.
"""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import dask
from distributed import Client, Worker

from workers import agent as agents
from workers import attempt as attempt  # imported now, so that the first job need not wait for it
from workers import hardware, host, lifeline, probe
from workers.agent import Agent
from workers.contract import Join, Probe
from workers.link import Link

log = logging.getLogger(__name__)
T = TypeVar("T")

DASK_SETTINGS = {
    "distributed.worker.daemon": False,
    # What the children hold is not the worker's to pause for; our own limits judge memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


@dataclass(frozen=True)
class Options:
    scheduler: str
    server: str
    token: str | None
    threads: int
    port: int
    lifeline: bool


def own_address(scheduler: str) -> str:
    """This machine's address as the scheduler sees it, so that a worker listens there and nowhere else: whoever reaches a
    Dask worker can run code on it."""
    target = urlsplit(scheduler)
    family, _, _, _, address = socket.getaddrinfo(target.hostname, target.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe_socket:
        probe_socket.connect(address)  # sends nothing; it only chooses the route
        return str(probe_socket.getsockname()[0])


async def run(options: Options, machine: host.Host) -> None:
    """Join, serve, and leave on SIGTERM, on SIGINT, when the scheduler goes, or when the lifeline is cut."""
    leave = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave.set)
    host.set_current_host(machine)
    if options.lifeline:
        # The server is gone, killed perhaps: nothing to report to, so end at once and take the children along.
        lifeline.watch(lambda: _end_at_once(machine))
    introduced = asyncio.Event()
    serving = asyncio.create_task(_serve(options, machine, introduced, leave))
    leaving = asyncio.create_task(leave.wait())
    try:
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not introduced.is_set():
            serving.cancel()  # still waiting for a scheduler, a server or its own kernels: nobody counts on it yet
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        leaving.cancel()
        machine.close()


async def _serve(options: Options, machine: host.Host, introduced: asyncio.Event, leave: asyncio.Event) -> None:
    name = f"wk_{uuid.uuid4().hex[:16]}"
    resources = {"CPU": options.threads, "GPU": 0}
    with dask.config.set(DASK_SETTINGS):
        async with Worker(
            options.scheduler,
            name=name,
            # Room is what `resources` say. The thread beyond them keeps a driver that came early from being in the probe's way.
            nthreads=options.threads + 1,
            host=own_address(options.scheduler),
            port=options.port,
            dashboard_address=f"{own_address(options.scheduler)}:0",
            resources=resources,
            memory_limit=0,
            dashboard=False,
        ) as worker:
            dask_probe = await _check_dask(options.scheduler, worker)
            agent = await in_thread(lambda: _introduce(options, name, resources, machine, worker.address, dask_probe))
            introduced.set()
            try:
                ends = {asyncio.ensure_future(leave.wait()), asyncio.ensure_future(worker.finished())}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await asyncio.to_thread(agent.close)


async def in_thread(work: Callable[[], T]) -> T:
    """`work` in a daemon thread of its own: one that waits for a server or a compiler must not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(outcome: Callable[[], None]) -> None:
        def unless_left() -> None:
            if not done.done():
                outcome()

        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(unless_left)

    def body() -> None:
        try:
            value = work()
        except BaseException as fault:
            failure = fault
            tell(lambda: done.set_exception(failure))
        else:
            tell(lambda: done.set_result(value))

    threading.Thread(target=body, name="introduction", daemon=True).start()
    return await done


def _end_at_once(machine: host.Host) -> None:
    agents.mark_closing()
    machine.close()
    os._exit(0)


def _introduce(
    options: Options, name: str, resources: dict[str, int], machine: host.Host, address: str, dask_probe: Probe
) -> Agent:
    """Probe what needs no nursery while that warms, then the rest, and join the server."""
    cuda_probe = probe.probed("cuda", probe.check_cuda)
    nursery = machine.nursery_for("matrix_profile")
    probes = [probe.probed("cpu", lambda: probe.check_cpu(nursery)), dask_probe, cuda_probe]
    join = Join(
        id=name,
        engine="dask",
        address=address,
        host=platform.node(),
        pid=os.getpid(),
        resources=resources,
        threads=options.threads,
        memory_bytes=hardware.memory_bytes(),
        cpu=hardware.cpu(),
        gpus=hardware.gpus(),
        versions=hardware.versions(),
        probes=probes,
        speed={"matrix_profile_cells_per_second": probe.in_child(nursery, "workers.probe:measure")},
    )
    agent = Agent(Link(options.server, options.token), join)
    agents.set_current(agent)
    agent.start()
    log.info("worker %s joined %s and %s", name, options.scheduler, options.server)
    return agent


async def _check_dask(scheduler: str, worker: Worker) -> Probe:
    """Have the scheduler run a task on this very worker."""
    async with Client(scheduler, asynchronous=True, set_as_default=False) as client:
        future = client.submit(sum, [20, 22], workers=[worker.address], pure=False)
        answer = await asyncio.wait_for(future, 30)

    def check() -> probe.Finding:
        if answer != 42:
            raise ArithmeticError(f"the cluster computed 20 + 22 = {answer}")
        return "executed", f"the scheduler at {scheduler} ran a task on this worker"

    return probe.probed("dask", check)


def main(options: Options, machine: host.Host) -> None:
    """Run a worker whose nursery is `machine`'s, until it is told to leave."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(options, machine))
