"""A job's pieces on their way: from the child's door to the workers of the cluster, and back."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from workers.agent import Agent
from workers.failures import JobFailure
from workers.spread.base import Answer, Cluster, Errand, WorkerGone
from workers.spread.door import Door, DoorClosed
from workers.spread.parcel import Parcel
from workers.spread.schedule import AT_HAND, PieceKillsWorkers, Schedule

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.5
"""How often the cluster is asked which workers it has."""


class PieceLost(JobFailure):
    """One piece of the job was lost with several workers, one after the other: it most likely ends them, for want of memory."""

    slug, title = "worker-lost", "Worker lost"


class Spreading:
    """Serves one child's door until it closes. All decisions are made in one thread; a second one only listens at the door."""

    def __init__(self, door: Door, open_cluster: Callable[[], Cluster], agent: Agent, attempt: str, claim: str) -> None:
        self._door, self._open_cluster, self._agent = door, open_cluster, agent
        self._attempt, self._claim = attempt, claim
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._schedule = Schedule()
        self._own: dict[int, tuple[Errand, Parcel]] = {}
        """piece → its errand and what it alone needs."""
        self._futures: dict[int, Future[Answer]] = {}
        self._shared: Parcel | None = None
        self._handle: Any = None
        self._workers: dict[str, int] = {}
        """address → how many pieces it computes at once."""
        self._in_threads = False
        self._looked = 0.0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._listen, name="door", daemon=True),
            threading.Thread(target=self._work, name="spreading", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """The child has ended: forget what it had asked for. Returns when both threads have."""
        self._door.hang_up()
        for thread in self._threads:
            thread.join()
        self._door.close()

    # ---- the listening thread ----------------------------------------------------------------------------------

    def _listen(self) -> None:
        while True:
            try:
                message, parcel = self._door.receive()
            except DoorClosed:
                self._inbox.put(self._end)
                return
            self._inbox.put(lambda message=message, parcel=parcel: self._obey(message, parcel))  # type: ignore[misc]

    # ---- the deciding thread -----------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            with contextlib.closing(self._open_cluster()) as cluster:
                while not self._closed:
                    with contextlib.suppress(queue.Empty):
                        self._inbox.get(timeout=0.1)()
                        while True:
                            self._inbox.get_nowait()()
                    self._look(cluster)
                    self._place(cluster)
        except DoorClosed:
            return  # the child has ended meanwhile; its driver knows why
        except Exception as fault:
            log.exception("pieces of attempt %s cannot be spread", self._attempt)
            failure = fault if isinstance(fault, JobFailure) else JobFailure(f"The pieces could not be spread: {fault}")
            with contextlib.suppress(DoorClosed):
                self._door.send({"op": "failed", "problem": failure.problem()})

    def _end(self) -> None:
        self._closed = True

    def _obey(self, message: dict[str, Any], parcel: Parcel | None) -> None:
        match message:
            case {"op": "share"}:
                self._shared, self._handle = parcel, None
                self._schedule = Schedule(resting=self._schedule.resting)
            case {"op": "piece", "number": number, "function": function, **said} if parcel:
                in_thread = bool(said.get("in_thread"))
                self._own[number] = (Errand(self._attempt, self._claim, number, function, in_thread), parcel)
                self._schedule.add(number)
                if in_thread != self._in_threads:
                    self._in_threads, self._looked = in_thread, 0.0
            case {"op": "end"}:
                self._shared, self._handle = None, None

    def _look(self, cluster: Cluster) -> None:
        """See which workers are here; what ran on those that left runs again elsewhere."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        try:
            here = cluster.workers()
        except ConnectionError as fault:
            log.info("the cluster does not say which workers it has: %s", fault)
            return
        peers = self._agent.peers
        # One that hangs is on the cluster still, and the server knows better. A child takes all threads of its worker.
        threads = {each: 1 if peers is None else peers[each] for each in here if peers is None or each in peers}
        workers = threads if self._in_threads else dict.fromkeys(threads, 1)
        if workers != self._workers:
            self._workers = workers
            self._door.send({"op": "slots", "count": sum(workers.values()) + AT_HAND * len(workers)})
        for piece in self._schedule.on_lost_workers(workers):
            self._settle(piece, self._futures[piece], WorkerGone("it left the cluster"))

    def _place(self, cluster: Cluster) -> None:
        for number, worker in self._schedule.place(self._workers, time.monotonic()):
            if self._handle is None and self._shared is not None:
                self._handle = cluster.share(self._shared)
            errand, own = self._own[number]
            future = self._futures[number] = cluster.submit(worker, errand, self._handle, own)
            future.add_done_callback(lambda done, number=number: self._inbox.put(lambda: self._settle(number, done)))  # type: ignore[misc]

    def _settle(self, number: int, future: Future[Answer], fault: BaseException | None = None) -> None:
        """A piece has ended, one way or another. What is said of a try that was given up is not heard."""
        if self._futures.get(number) is not future:
            return
        del self._futures[number]
        fault = fault or future.exception()
        if isinstance(fault, WorkerGone):
            log.warning("piece %d of attempt %s was lost (%s); it runs again", number, self._attempt, fault)
            self._handle = None  # what it shared may be lost as well
            self._run_again(number)
            return
        if fault is not None:
            raise fault
        answer = future.result()
        match answer.end:
            case "busy":
                self._schedule.busy(number, time.monotonic())
            case "done":
                worker = self._schedule.running[number]
                self._schedule.done(number)
                del self._own[number]
                self._door.send({"op": "done", "number": number, "worker": worker}, answer.value)
            case "failed":
                self._door.send({"op": "failed", "problem": answer.problem})
            case "stopped":
                self._schedule.done(number)  # the attempt is being stopped; its child hears of it otherwise

    def _run_again(self, number: int) -> None:
        try:
            self._schedule.lost(number)
        except PieceKillsWorkers as told:
            raise PieceLost(f"{told} Use a shorter series, or workers with more memory.") from None
