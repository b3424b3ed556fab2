"""What a job computes on: this process, the cluster, or GPUs; and what every call of STUMPY has in common."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numba

from workers.matrix_profile.tiles.hands import Hands, ThreadHands
from workers.operations import OPERATIONS
from workers.reporting import Reporter
from workers.stumpys import stumpy

PIECE_SECONDS = 0.5
"""Work of one piece, about: progress moves and a cancel or a lost worker costs no more."""

TRIVIAL_SECONDS = 0.2
PIECES_PER_WORKER: Final = 4
"""On a cluster, at least, so that a slower or a joining worker gets its share."""

EXPECTED_WARNINGS: Final = (
    "The window size, 'm = ",  # we count the windows without a neighbour ourselves
    "A large number of values in `P` are smaller",
    "Arrays T_A, T_B are equal",  # asked for; the reporter says so in our words
    "divide by zero encountered",  # windows of one value have no deviation to divide by
    "invalid value encountered",
)


@dataclass(frozen=True)
class Ground:
    """backend: `cpu`, `dask`, `ray` or `cuda`.  workers: how many a cluster spreads over.  devices: CUDA indices.
    implementation: `tiles` or `stumpy`."""

    report: Reporter
    backend: str = "cpu"
    workers: int = 1
    devices: tuple[int, ...] = ()
    implementation: str = "stumpy"

    @classmethod
    def of(cls, task: Mapping[str, Any], report: Reporter) -> "Ground":
        plan = task.get("plan") or {}
        devices = tuple(int(device) for device in task.get("devices") or ())
        backend, implementation = str(plan.get("backend") or "cpu"), str(plan.get("implementation") or "stumpy")
        return cls(report, backend, max(1, int(plan.get("workers") or 1)), devices, implementation)

    @property
    def spreads(self) -> bool:
        return self.backend in ("dask", "ray")

    @property
    def tiled(self) -> bool:
        return self.implementation == "tiles"

    @property
    def threads(self) -> int:
        """Those of this process that may compute."""
        return threads()

    def hands(self) -> Hands:
        """Who computes tiles: the threads of this process, or those of the cluster's workers."""
        if not self.spreads:
            return ThreadHands(threads())
        from workers.matrix_profile.tiles.spread import (
            SpreadHands,
        )  # needs a door to the driver, which only a spread job has

        return SpreadHands()

    def function(self, kind: str, *, normalize: bool, in_pieces: bool = False) -> str:
        """STUMPY's name for what this ground calls; `in_pieces` asks for the one that takes a client."""
        backend = "dask" if in_pieces else self.backend
        return OPERATIONS[kind].functions[backend].pick(normalize)

    def client(self, pieces: int) -> Any:
        """A client for STUMPY's distributed functions, which cut their work into as many pieces as it claims workers."""
        if not self.spreads:
            return ClientHere(pieces, self.report)
        from workers.spread.client import ClientSpread  # needs a door to the driver, which only a spread job has

        return ClientSpread(pieces, self.report)

    def shares(self) -> dict[str, Any]:
        """How many pieces each worker of a cluster computed, for provenance."""
        if not self.spreads:
            return {}
        from workers.spread.client import computed

        return {"pieces_by_worker": dict(computed)}

    def first(self, pieces: int) -> tuple[Any, ...]:
        """What precedes the series in a call cut into pieces."""
        return (self.client(pieces),) if self.in_pieces(pieces) else ()

    def devices_asked(self, windows: int) -> dict[str, Any]:
        """STUMPY's `device_id`, for a series of so many windows: one index, or a list where there are several."""
        if self.backend != "cuda":
            return {}
        from workers.cuda.job import device_id

        return {"device_id": device_id(self.devices, windows)}

    def in_pieces(self, pieces: int) -> bool:
        return self.spreads or (self.backend == "cpu" and pieces > 1)

    def pieces(self, seconds: float, longest: float, most: int) -> int:
        """How many pieces for work of `seconds` on one thread of one worker; each of `longest` or less, `most` in all."""
        if self.backend == "cuda":
            return 1
        wanted = math.ceil(seconds / longest)
        if self.spreads:
            wanted = max(wanted, self.workers * (PIECES_PER_WORKER if seconds > TRIVIAL_SECONDS else 1))
        return max(1, min(wanted, most))


def threads() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)


def stumpys(name: str) -> Any:
    """STUMPY's function or class of that name."""
    return getattr(stumpy, name)


@contextmanager
def hearing(report: Reporter) -> Iterator[None]:
    """Pass on what STUMPY warns about, except for what we say better."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(each.message) for each in heard):
        if not message.startswith(EXPECTED_WARNINGS):
            report.warning(f"STUMPY: {message}")


class ClientHere:
    """The cluster that is this process. STUMPY asks for results by number and merges each before it asks for the next,
    so a piece runs when it is asked for, and only two results are ever held."""

    def __init__(self, pieces: int, report: Reporter) -> None:
        self.pieces, self.report = pieces, report

    def ncores(self) -> dict[str, int]:
        return {f"piece {number}": 1 for number in range(self.pieces)}

    def scatter(self, data: Any, **where: Any) -> Any:
        return data

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        return partial(function, *arguments)

    def gather(self, pieces: Sequence[Callable[[], Any]]) -> "OneByOne":
        return OneByOne(pieces, self.report)


class OneByOne:
    """Results computed when they are first looked at, in order."""

    def __init__(self, pieces: Sequence[Callable[[], Any]], report: Reporter) -> None:
        self.pieces, self.report, self.started = pieces, report, time.monotonic()

    def __getitem__(self, number: int) -> Any:
        result = self.pieces[number]()
        done, total = number + 1, len(self.pieces)
        self.report.progress(done, total, "pieces", (time.monotonic() - self.started) / done * (total - done))
        return result
