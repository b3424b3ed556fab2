"""The workers of a Ray cluster, for one job's pieces. Used in the process of a Ray worker's actor, from whatever thread."""

import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any, Final
from weakref import WeakValueDictionary

import ray

from workers.ray_names import SCHEME, named_workers
from workers.spread import piece
from workers.spread.base import Answer, Errand, WorkerGone
from workers.spread.calling import ANSWER, Lookout, give_up, settle
from workers.spread.parcel import Parcel

COMPUTE: Final = "workers.spread.ray:compute"


def open_cluster() -> "RayCluster":
    """The cluster of this worker."""
    return RayCluster()


class RayCluster:
    """See `workers.spread.base.Cluster`. What it shares lies in the object store, and is this process's: it goes with it."""

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}
        self._dead: set[str] = set()
        self._lookout = Lookout(self.workers)

    def workers(self) -> Collection[str]:
        try:
            return {SCHEME + name for name in named_workers()} - self._dead
        except (ray.exceptions.RayError, RuntimeError) as fault:
            raise ConnectionError(f"the Ray cluster does not answer: {fault}") from fault

    def share(self, parcel: Parcel) -> Any:
        return ray.put(parcel)

    def submit(self, address: str, errand: Errand, shared: Any, own: Parcel) -> Future[Answer]:
        answer: Future[Answer] = Future()
        actor = self._actor(address)
        if actor is not None:
            # A reference within a list stays one: the worker looks whether it has what is shared already.
            task = actor.call.remote(COMPUTE, [errand, shared, own])
            task.future().add_done_callback(lambda done: self._tell(address, done, answer))
        return answer

    def _actor(self, address: str) -> Any:
        if address not in self._actors and address not in self._dead:
            try:
                self._actors[address] = ray.get_actor(address.removeprefix(SCHEME))
            except ValueError:  # no actor has that name, any longer
                self._dead.add(address)
        return None if address in self._dead else self._actors[address]

    def _tell(self, address: str, task: "Future[Answer]", answer: "Future[Answer]") -> None:
        try:
            answer.set_result(task.result())
        except ray.exceptions.RayActorError:
            # Known in milliseconds, while whoever places pieces still counts on the worker. `workers` says it is gone, and that is
            # what loses the piece: told here, it would be sent to the same corpse, and lost there, again and again.
            self._dead.add(address)
        except Exception as fault:  # what a piece itself can say comes as an Answer: anything else is the cluster's
            answer.set_exception(WorkerGone(f"{type(fault).__name__}: {fault}"))

    def call(self, address: str, function: str, arguments: list[Any]) -> Future[Any]:
        call: Future[Any] = Future()
        actor = self._actor(address)
        if actor is None:
            give_up(call, f"no worker {address} is on the cluster")
            return call
        task = actor.call.remote(ANSWER, [function, arguments])
        task.future().add_done_callback(lambda done: _answer(done, call))
        self._lookout.watch(call, address)
        return call

    def reached_by(self) -> str:
        return str(ray.util.get_node_ip_address())

    def close(self) -> None:
        self._lookout.close()
        self._actors.clear()


def _answer(task: "Future[Any]", call: "Future[Any]") -> None:
    try:
        settle(call, task.result())
    except Exception as fault:  # what the function raised comes as words
        give_up(call, f"{type(fault).__name__}: {fault}")


_here: WeakValueDictionary[str, Parcel] = WeakValueDictionary()
_fetching = threading.Lock()


def compute(errand: Errand, shared: Any, own: Parcel) -> Answer:
    """In the target's process: run a piece. What several of them share is fetched once, and let go with the last of them."""
    if shared is None:
        return piece.compute(errand, None, own)
    name = shared.hex()
    with _fetching:
        parcel = _here.get(name)
        if parcel is None:
            parcel = _here[name] = ray.get(shared)
    return piece.compute(errand, parcel, own)
