"""A worker on a Dask cluster: `python -m workers dask --scheduler tcp://… --server http://…`.

One process, no nanny: whoever started it starts it again. It joins the scheduler, warms its nursery, probes itself, and only
then introduces itself to the server, so a worker the server knows is a worker that can compute at once.
"""

import asyncio
import contextlib
import os
import socket
import uuid
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import dask
from distributed import Client, Worker

from workers import agent as agents
from workers import host, joining, probe
from workers.contract import call_by_name
from workers.probes.cpu import ON_THIS_WORKER

CHECK_SECONDS = 30.0
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
    Dask worker can run code on it."""
    target = urlsplit(scheduler)
    family, _, _, _, address = socket.getaddrinfo(target.hostname, target.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe_socket:
        probe_socket.connect(address)  # sends nothing; it only chooses the route
        return str(probe_socket.getsockname()[0])


async def run(options: Options, machine: host.Host) -> None:
    """Join, serve, and leave on SIGTERM, on SIGINT, when the scheduler goes, or when the lifeline is cut."""
    host.set_current_host(machine)
    # Without a server, killed perhaps, there is nobody to report to: end at once and take the children along.
    end_at_once = partial(_end_at_once, machine) if options.lifeline else None
    try:
        await joining.live(partial(_serve, options, machine), end_at_once)
    finally:
        machine.close()


async def _serve(options: Options, machine: host.Host, introduced: asyncio.Event, leave: asyncio.Event) -> None:
    name = f"wk_{uuid.uuid4().hex[:16]}"
    resources = {"CPU": options.threads, "GPU": options.gpus}
    with dask.config.set(DASK_SETTINGS):
        async with Worker(
            options.scheduler,
            name=name,
            # Room is what `resources` say, and what computes waits its turn in the host's slot. The threads beyond keep drivers that
            # came early, jobs that probe, and pieces that wait from being in one another's way.
            nthreads=options.threads + SPARE_THREADS,
            host=own_address(options.scheduler),
            port=options.port,
            dashboard_address=f"{own_address(options.scheduler)}:0",
            resources=resources,
            memory_limit=0,
            dashboard=False,
        ) as worker:
            newcomer = joining.Newcomer(name, "dask", worker.address, options.server, options.token, resources)
            check = partial(_check_dask, options.scheduler, worker.address, asyncio.get_running_loop())
            agent = await joining.in_thread(lambda: joining.introduce(newcomer, machine, check))
            introduced.set()
            try:
                ends = {asyncio.ensure_future(leave.wait()), asyncio.ensure_future(worker.finished())}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await asyncio.to_thread(agent.close)


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


def main(options: Options, machine: host.Host) -> None:
    """Run a worker whose nursery is `machine`'s, until it is told to leave."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(options, machine))
