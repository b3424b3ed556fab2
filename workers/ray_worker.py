"""A worker on a Ray cluster: `python -m workers ray --address … --server http://…`.

Two processes. This one is a Ray driver that owns one actor and does nothing else: whoever started it starts it again. The actor, a
process of Ray's on the same node, is the worker: it holds the nursery and the agent, and runs drivers and pieces in its threads. It is not
detached, so it ends with its owner; and its owner ends with it. A machine takes part once a Ray node runs on it (`ray start --address=…`).
"""

import asyncio
import contextlib
import logging
import os
import threading
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from workers import agent as agents
from workers import attempt, host, joining, probe
from workers.contract import call_by_name
from workers.environment import compute_environment
from workers.failures import CannotJoin
from workers.link import Refused
from workers.logs import set_up_logging
from workers.probes.cpu import ON_THIS_WORKER
from workers.ray_names import NAME_PREFIX, NAMESPACE, SCHEME
from workers.training.node_messages import LEAVING_SECONDS

log = logging.getLogger(__name__)

CALLS_AT_ONCE: Final = 32
"""Pieces, questions, and the two calls of its owner's; attempts have threads of their own."""
CHECK_SECONDS: Final = 30.0
LEAVE_SECONDS: Final = 2.0 + LEAVING_SECONDS + 2 * attempt.DELIVERY_SECONDS
"""What the worker itself takes at most to leave in good order."""
ROOM_SECONDS: Final = 20.0
SECRETS: Final = frozenset({"TIDEMILL_JOIN_TOKEN"})
"""Not for an actor's environment, which everybody on the cluster can read."""


@dataclass(frozen=True)
class Options:
    address: str
    server: str
    token: str | None
    threads: int
    gpus: int
    lifeline: bool


def connect(address: str) -> None:
    """Join the cluster as a driver. Off the main thread Ray leaves the process's signals alone, and need not warn of it."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)


# ---- the actor -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """Where the owner's standard error goes, so that its actor's goes there too, and not into a file of Ray's that nobody reads."""

    path: str
    device: int
    inode: int

    @classmethod
    def of_this_process(cls) -> "Words":
        status = os.fstat(2)
        return cls(f"/proc/{os.getpid()}/fd/2", status.st_dev, status.st_ino)

    def adopt(self) -> None:
        with contextlib.suppress(OSError):  # a socket, or another container: then Ray's own log keeps the words
            opened = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            status = os.fstat(opened)
            if (status.st_dev, status.st_ino) == (self.device, self.inode):
                os.dup2(opened, 1)
                os.dup2(opened, 2)
            os.close(opened)


class RayWorker:
    """What the actor's process is: one worker of the server's."""

    def __init__(self, newcomer: joining.Newcomer, cluster: str, words: Words) -> None:
        words.adopt()
        set_up_logging()
        self._newcomer, self._cluster = newcomer, cluster
        self._machine = host.Host(compute_environment(newcomer.resources["CPU"]))
        host.set_current_host(self._machine)
        self._driving: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._left = threading.Event()
        self._agent: agents.Agent | None = None

    def join(self) -> str | None:
        """Warm up, probe, join the server. Returns None, or why the server refused."""
        try:
            self._agent = joining.introduce(self._newcomer, self._machine, self._check)
        except Refused as refusal:
            return str(refusal)
        return None

    def _check(self) -> probe.Finding:
        """Call this very worker through the cluster."""
        names = ray.get(ray.get_actor(self._newcomer.id).call.remote(ON_THIS_WORKER, []), timeout=CHECK_SECONDS)
        return (
            "executed",
            f"the cluster at {self._cluster} had {', '.join(names)} run here, with the answers of STUMPY's documentation",
        )

    def execute(self, attempt_id: str) -> None:
        """Begin to run an attempt, and return. One that runs here already goes on as it is."""
        with self._lock:
            earlier = self._driving.get(attempt_id)
            if earlier is None or not earlier.is_alive():
                self._driving = {name: thread for name, thread in self._driving.items() if thread.is_alive()}
                thread = threading.Thread(target=_drive, args=(attempt_id,), name=attempt_id, daemon=True)
                self._driving[attempt_id] = thread
                thread.start()

    def call(self, function: str, arguments: list[Any]) -> Any:
        """Call `package.module:function` in this process."""
        return call_by_name(function, *arguments)

    def last(self) -> None:
        """Return when this worker has left; raises at its owner's when its process ends before."""
        self._left.wait()

    def leave(self) -> None:
        """Say goodbye, and stop what runs here."""
        if self._agent:
            self._agent.close()
        self._machine.close()
        self._left.set()


def _drive(attempt_id: str) -> None:
    try:
        attempt.execute(attempt_id)
    except Exception:  # nobody takes the result of this thread
        log.exception("the driver of attempt %s could not begin", attempt_id)


# ---- its owner -------------------------------------------------------------------------------------------------


def make_actor(options: Options, name: str) -> Any:
    """The worker's actor on this process's own node, once that has room for it. Raises CannotJoin."""
    context = ray.get_runtime_context()
    node = next(node for node in ray.nodes() if node["NodeID"] == context.get_node_id())
    gpus = min(options.gpus, int(node["Resources"].get("GPU", 0)))
    if (room := int(node["Resources"].get("CPU", 0))) < options.threads:
        raise CannotJoin(
            f"This machine's Ray node was started with {room} CPUs, and --threads asks for {options.threads}. "
            "Ask for fewer, or start the node with a larger --num-cpus."
        )
    newcomer = joining.Newcomer(
        id=name,
        engine="ray",
        address=SCHEME + name,
        server=options.server,
        token=options.token,
        resources={"CPU": options.threads, "GPU": gpus},
    )
    actor = (
        ray.remote(RayWorker)
        .options(
            name=name,
            num_cpus=options.threads,
            num_gpus=gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=CALLS_AT_ONCE,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            runtime_env={"env_vars": _environment(options.threads, gpus)},
        )
        .remote(newcomer, context.gcs_address, Words.of_this_process())
    )
    joined = actor.join.remote()
    while not ray.wait([actor.call.remote("builtins:len", [[]])], timeout=ROOM_SECONDS)[0]:
        log.warning("waiting for %d CPUs and %d GPUs of this machine's Ray node", options.threads, gpus)
    return actor, joined


def _environment(threads: int, gpus: int) -> dict[str, str]:
    """The actor's: Ray starts its process from the node's environment, not from this one's."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("TIDEMILL_") and name not in SECRETS}
    hidden = {} if gpus else {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
    return compute_environment(threads) | ours | hidden


async def _serve(options: Options, introduced: asyncio.Event, leave: asyncio.Event) -> None:
    name = f"{NAME_PREFIX}{uuid.uuid4().hex[:16]}"
    await joining.in_thread(partial(connect, options.address))
    joining.leave_on_signals(leave)  # again: Ray's core has put a handler of its own before ours, which prints a stack
    actor, joined = await joining.in_thread(partial(make_actor, options, name))
    if refusal := await joining.in_thread(partial(ray.get, joined)):
        raise Refused(409, refusal)
    introduced.set()
    lasting = asyncio.ensure_future(joining.in_thread(lambda: ray.get(actor.last.remote())))
    leaving = asyncio.ensure_future(leave.wait())
    await asyncio.wait({lasting, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if lasting.done():
        await lasting  # raises what ended it
    with contextlib.suppress(ray.exceptions.RayError):  # it, or its cluster, may end at this very moment
        await joining.in_thread(lambda: ray.get(actor.leave.remote(), timeout=LEAVE_SECONDS))


def main(options: Options) -> int:
    """Own a worker until it is told to leave, or ends. Returns the exit code; raises Refused, CannotJoin."""
    # Without a server there is nobody to report to: the actor ends with this process, and with it all its children.
    end_at_once = partial(os._exit, 0) if options.lifeline else None
    try:
        asyncio.run(joining.live(partial(_serve, options), end_at_once))
    except (ray.exceptions.RayError, ConnectionError, RuntimeError) as fault:
        cause = getattr(fault, "cause", None) or fault  # an actor's own failure comes wrapped
        log.error("the worker ended with its actor or its cluster: %s: %s", type(cause).__name__, cause)
        return 1
    return 0
