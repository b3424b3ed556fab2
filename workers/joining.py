"""What a worker of any engine does: warm up, probe itself, introduce itself to the server, serve, and leave in good order."""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from workers import agent as agents
from workers import attempt as attempt  # imported now, so that the first job need not wait for it
from workers import environment, hardware, health, host, lifeline, probe
from workers.agent import Agent
from workers.contract import Join, Probe, call_by_name
from workers.failures import JobFailure
from workers.link import Link
from workers.storage.settle import settled

log = logging.getLogger(__name__)
T = TypeVar("T")

Serve = Callable[[asyncio.Event, asyncio.Event], Awaitable[None]]
"""`serve(introduced, leave)`: sets the first once the server knows the worker, returns soon after the second is set."""


@dataclass(frozen=True)
class Newcomer:
    """A worker on its way to the server: what its engine and its command line say of it."""

    id: str
    engine: str
    address: str
    server: str
    token: str | None
    resources: dict[str, int]


async def live(serve: Serve, end_at_once: Callable[[], object] | None) -> None:
    """Serve until SIGTERM, SIGINT or an end of the cluster's. `end_at_once` is called when the lifeline is cut; None watches none."""
    leave, introduced = asyncio.Event(), asyncio.Event()
    leave_on_signals(leave)
    if end_at_once:
        lifeline.watch(end_at_once)
    serving = asyncio.ensure_future(serve(introduced, leave))
    leaving = asyncio.create_task(leave.wait())
    try:
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not introduced.is_set():
            serving.cancel()  # still waiting for a cluster, a server or its own kernels: nobody counts on it yet
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        leaving.cancel()


def leave_on_signals(leave: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave.set)


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


def introduce(newcomer: Newcomer, machine: host.Host, check_engine: Callable[[], probe.Finding]) -> Agent:
    """Probe this machine, with `check_engine` for the cluster it is on, and join the server. Raises Refused."""

    def find(check: str) -> list[Probe]:
        return probe.run_probes(machine, check, {newcomer.engine: check_engine})

    health.begin()
    threading.Thread(target=machine.load_tiles, name="tiles", daemon=True).start()  # while the nursery warms
    link = Link(newcomer.server, newcomer.token)
    storage = settled(link, lambda: time.sleep(agents.REPORT_SECONDS))
    probes = probe.first_probes(machine, {newcomer.engine: check_engine})
    join = Join(
        id=newcomer.id,
        engine=newcomer.engine,
        address=newcomer.address,
        host=platform.node(),
        pid=os.getpid(),
        resources=newcomer.resources,
        threads=newcomer.resources["CPU"],
        memory_bytes=hardware.memory_bytes(),
        cpu=hardware.cpu(),
        gpus=hardware.gpus(),
        versions=hardware.versions(),
        probes=probes,
        speed=probe.speeds(machine, probes),
        storage=storage.facts.id if storage.facts else None,
        shares_storage=storage.shared,
    )
    agent = Agent(link, join, find, storage)
    agents.set_current(agent)
    agent.start()
    log.info("worker %s joined the server at %s", newcomer.id, newcomer.server)
    if environment.training_warms():
        threading.Thread(target=_prepare_to_train, args=(agent, machine), name="training", daemon=True).start()
    return agent


def _prepare_to_train(agent: Agent, machine: host.Host) -> None:
    """Warm the training nursery beside whatever else there is to do, and say what it can. A job that comes before waits for it."""
    try:
        machine.nursery_for(host.TRAINING, unless=agent.closing)
        if not agent.closing.is_set():
            agent.add_probes(probe.run_probes(machine, probe.TRAINING))
    except JobFailure as failure:
        log.warning("no training here: %s", failure)


def answer(function: str, arguments: list[Any]) -> dict[str, Any]:
    """What an engine's `ask` runs here: `function`'s value, or what it raised in words, on every engine alike."""
    try:
        return {"value": call_by_name(function, *arguments)}
    except Exception as fault:
        return {"raised": f"{type(fault).__name__}: {fault}"}
