"""Calls of workers by workers: what an engine carries, and the lookout for those that will never be answered."""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, InvalidStateError
from typing import Any, Final

from workers.spread.base import CallFailed, WorkerGone

log = logging.getLogger(__name__)

ANSWER: Final = "workers.joining:answer"
"""What runs on the worker: a value comes back as `value`, what was raised in words as `raised`."""
LOOK_SECONDS: Final = 0.5


def settle(call: "Future[Any]", told: dict[str, Any]) -> None:
    """Give a call the answer that came for it."""
    with contextlib.suppress(InvalidStateError):  # given up already
        if "raised" in told:
            call.set_exception(CallFailed(told["raised"]))
        else:
            call.set_result(told["value"])


def give_up(call: "Future[Any]", reason: str) -> None:
    with contextlib.suppress(InvalidStateError):
        call.set_exception(WorkerGone(reason))


class Lookout:
    """Ends the calls of workers that have left: an engine may keep a call whose worker is lost, for one of that name to come."""

    def __init__(self, workers: Callable[[], Collection[str]]) -> None:
        self._workers = workers
        self._open: dict[Future[Any], str] = {}
        """call → the worker's address."""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, call: "Future[Any]", address: str) -> None:
        with self._lock:
            self._open[call] = address
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="lookout", daemon=True)
                self._thread.start()
        call.add_done_callback(self._forget)

    def close(self) -> None:
        """Give up what is open still."""
        self._closed.set()
        with self._lock:
            left = list(self._open)
        for call in left:
            give_up(call, "the connection to the cluster was closed")

    def _forget(self, call: "Future[Any]") -> None:
        with self._lock:
            self._open.pop(call, None)

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            with self._lock:
                calls = dict(self._open)
            if not calls:
                continue
            try:
                here = self._workers()
            except Exception as fault:
                # A worker whose cluster is lost ends by itself, and with it this process; a closed client asks nobody.
                log.info("the cluster does not say which workers it has: %s", fault)
                continue
            for call, address in calls.items():
                if address not in here:
                    give_up(call, f"{address} left the cluster")
