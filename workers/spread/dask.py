"""The workers of a Dask cluster, for one job's pieces."""

import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any, Final
from urllib.parse import urlsplit

import distributed
from distributed import Client

from workers.contract import call_by_name
from workers.spread.base import Answer, Errand, WorkerGone
from workers.spread.calling import ANSWER, Lookout, give_up, settle
from workers.spread.parcel import Parcel

COMPUTE: Final = "workers.spread.piece:compute"
ASK_SECONDS: Final = 5.0
FETCH_SECONDS: Final = 60.0
NAME_PREFIX: Final = "wk_"
"""Tidemill's workers on the cluster; others have no nursery."""


def open_cluster() -> "DaskCluster":
    """The cluster of this worker. Called in the process of a Dask worker, from whatever thread."""
    (worker,) = distributed.Worker._instances  # one process, one worker
    return DaskCluster(worker.scheduler.address, worker.address)


class DaskCluster:
    """See `workers.spread.base.Cluster`. A connection of its own: closing it drops all its pieces and data."""

    def __init__(self, scheduler: str, home: str) -> None:
        self._home = home
        self._client = Client(
            scheduler, set_as_default=False, direct_to_workers=True, timeout=ASK_SECONDS, name="tidemill-pieces"
        )
        self._lookout = Lookout(self.workers)

    def workers(self) -> Collection[str]:
        try:
            identity = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=ASK_SECONDS)
        except (OSError, TimeoutError) as fault:
            raise ConnectionError(f"the Dask scheduler does not answer: {fault}") from fault
        return {address for address, about in identity["workers"].items() if str(about["name"]).startswith(NAME_PREFIX)}

    def share(self, parcel: Parcel) -> Any:
        # It stays on the job's own worker, with which the job itself would end; others fetch it from there.
        return self._client.scatter(parcel, workers=[self._home], direct=True, hash=False)

    def submit(self, address: str, errand: Errand, shared: Any, own: Parcel) -> Future[Answer]:
        task = self._client.submit(
            call_by_name,
            COMPUTE,
            errand,
            shared,
            self._client.scatter(own, workers=[self._home], direct=True, hash=False),
            workers=[address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        answer: Future[Answer] = Future()
        # Dask calls back from a thread of its own; a task whose worker or data is lost ends as an error or as cancelled.
        task.add_done_callback(lambda done: _tell(done, answer))
        return answer

    def call(self, address: str, function: str, arguments: list[Any]) -> Future[Any]:
        task = self._client.submit(
            call_by_name,
            ANSWER,
            function,
            arguments,
            workers=[address],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        call: Future[Any] = Future()
        task.add_done_callback(lambda done: _answer(done, call))
        self._lookout.watch(call, address)
        return call

    def reached_by(self) -> str:
        return urlsplit(self._home).hostname or ""

    def close(self) -> None:
        self._lookout.close()
        self._client.close(timeout=ASK_SECONDS)


def _tell(task: distributed.Future, answer: "Future[Answer]") -> None:
    """Pass on how a task ended. All clients of a process share the one thread that calls this, so nothing may wait in it."""
    if task.status != "finished":
        answer.set_exception(WorkerGone(f"Dask calls the piece {task.status}"))
        return
    threading.Thread(target=_fetch, args=(task, answer), name="fetch", daemon=True).start()


def _fetch(task: distributed.Future, answer: "Future[Answer]") -> None:
    try:
        answer.set_result(task.result(timeout=FETCH_SECONDS))
    except Exception as fault:  # what a piece itself can say comes as an Answer: anything else is the cluster's
        answer.set_exception(WorkerGone(f"{type(fault).__name__}: {fault}"))


def _answer(task: distributed.Future, call: "Future[Any]") -> None:
    """As `_tell`, of a call."""
    if task.status != "finished":
        give_up(call, f"Dask calls the task {task.status}")
        return
    threading.Thread(target=_fetch_answer, args=(task, call), name="fetch", daemon=True).start()


def _fetch_answer(task: distributed.Future, call: "Future[Any]") -> None:
    try:
        settle(call, task.result(timeout=FETCH_SECONDS))
    except Exception as fault:
        give_up(call, f"{type(fault).__name__}: {fault}")
