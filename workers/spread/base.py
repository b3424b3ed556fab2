"""The port to the workers of one cluster, as a job sees it: where its pieces can run, and running one there.

Which piece goes where is ours to decide (`schedule.py`); a cluster carries the call and the data. Dask and Ray implement it; every
test of it runs against both.
"""

from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from workers.spread.parcel import Parcel


@dataclass(frozen=True)
class Errand:
    """One piece of an attempt: what to call, and for whom. The attempt's claim is the piece's right to run.

    in_thread: it can be stopped, and leaves the interpreter to others while it computes, so it needs no child.
    """

    attempt: str
    claim: str
    number: int
    function: str
    in_thread: bool = False


@dataclass(frozen=True)
class Answer:
    """How a piece ended on its worker.

    `busy`: nothing was computed, the worker's threads are another job's just now. `stopped`: the attempt is not to run any more.
    """

    end: Literal["done", "busy", "stopped", "failed"]
    value: Parcel | None = None
    problem: dict[str, Any] | None = None


class WorkerGone(Exception):
    """The worker, or the data it needed, was lost before the piece had ended: run it somewhere else."""


class CallFailed(Exception):
    """A call raised on its worker; in words, for the exception's class may be known there only."""


class Cluster(Protocol):
    """The workers of one engine. Used by one thread, but for `call`, which any may use."""

    def workers(self) -> Collection[str]:
        """Addresses of the workers that are here now. Raises ConnectionError while the cluster cannot be asked."""

    def share(self, parcel: Parcel) -> Any:
        """Hold what all pieces of a batch need where every worker can get it, once; pass the result to `submit`."""

    def submit(self, address: str, errand: Errand, shared: Any, own: Parcel) -> Future[Answer]:
        """Have the worker at `address` compute a piece. The future raises WorkerGone where the worker is lost."""

    def call(self, address: str, function: str, arguments: list[Any]) -> Future[Any]:
        """Call `package.module:function` in a thread of the worker at `address`, once.

        The future raises WorkerGone where the worker is lost before it has answered, and CallFailed with what the function raised.
        """

    def reached_by(self) -> str:
        """The address by which the machines of the other workers reach this one."""

    def close(self) -> None:
        """Forget all pieces and shared data."""
