"""The cluster as STUMPY sees it, from within a job's child.

STUMPY takes any client whose class name starts with "Client" and asks four things of it (decision 8). Ours hands the pieces through
the door to the driver, which spreads them; results are merged in order while later pieces are computed.
"""

import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from workers import births
from workers.failures import JobFailure
from workers.reporting import Reporter
from workers.spread.door import Door
from workers.spread.parcel import Parcel

FIRST_SLOTS: Final = 2
"""Until the driver has said how many pieces the cluster takes at once."""

computed: Counter[str] = Counter()
"""How many pieces of this child's job each worker computed, by its address: evidence for the result's provenance."""


class PieceProblem(JobFailure):
    """A piece failed on its worker; the problem is that piece's."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told.get("detail", "A piece failed."))
        self.told = told

    def problem(self) -> dict[str, Any]:
        return self.told


@cache
def the_door() -> Door:
    """The door this child was born with. Raises RuntimeError in a process that has none."""
    if not births.born_with:
        raise RuntimeError("this process was not born with a door to a cluster")
    return Door(socket.socket(fileno=births.born_with[0]))


@dataclass(frozen=True)
class Deferred:
    """A call that STUMPY submitted and that has not begun."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class ClientSpread:
    """The cluster of the job's engine, cut into `pieces`."""

    def __init__(self, pieces: int, report: Reporter) -> None:
        self.pieces, self.report = pieces, report

    def ncores(self) -> dict[str, int]:
        return {f"piece {number}": 1 for number in range(self.pieces)}

    def scatter(self, data: Any, **where: Any) -> Any:
        return data

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Deferred:
        return Deferred(function, arguments)

    def gather(self, pieces: Sequence[Deferred]) -> "Spread":
        return Spread(pieces, the_door(), self.report)


class Hatch:
    """Where pieces are handed over and their results come back, through the door of this child."""

    def __init__(self, door: Door) -> None:
        self.door, self.slots = door, FIRST_SLOTS

    def open(self, shared: Parcel | None = None) -> None:
        """Begin a batch of pieces, with what all of them need."""
        self.door.send({"op": "share"}, shared)

    def hand_over(self, number: int, function: str, own: Parcel, *, in_thread: bool = False) -> None:
        self.door.send({"op": "piece", "number": number, "function": function, "in_thread": in_thread}, own)

    def take(self) -> tuple[int, Parcel] | None:
        """Wait for news: the number of a piece with its result, or None where it was about how many pieces there is room for.

        Raises PieceProblem where a piece failed.
        """
        message, parcel = self.door.receive()
        match message:
            case {"op": "slots", "count": count}:
                self.slots = max(1, count)
            case {"op": "failed", "problem": problem}:
                raise PieceProblem(problem)
            case {"op": "done", "number": number, "worker": worker} if parcel:
                computed[worker] += 1
                return number, parcel
        return None

    def close(self) -> None:
        """End the batch."""
        self.door.send({"op": "end"})


class Spread:
    """The results of one batch, in order. STUMPY asks for them by number and merges each before it asks for the next."""

    def __init__(self, pieces: Sequence[Deferred], door: Door, report: Reporter) -> None:
        self.pieces, self.hatch, self.report = pieces, Hatch(door), report
        self.sent, self.finished, self.started = 0, 0, time.monotonic()
        self.results: dict[int, Parcel] = {}
        self.shared = [position for position in range(len(pieces[0].arguments)) if self._same(position)]
        self.hatch.open(Parcel.of({position: pieces[0].arguments[position] for position in self.shared}))

    def _same(self, position: int) -> bool:
        first = self.pieces[0].arguments[position]
        return all(piece.arguments[position] is first for piece in self.pieces)

    def __getitem__(self, number: int) -> Any:
        while number not in self.results:
            self._keep_busy(number)
            if taken := self.hatch.take():
                self.results[taken[0]] = taken[1]
                self._report()
        result = self.results.pop(number).open()
        if number == len(self.pieces) - 1:
            self.hatch.close()
        return result

    def _keep_busy(self, needed: int) -> None:
        """Hand pieces over as far ahead as the cluster has room: results that wait to be merged take memory."""
        while self.sent < min(len(self.pieces), needed + self.hatch.slots + 1):
            piece = self.pieces[self.sent]
            own = {i: value for i, value in enumerate(piece.arguments) if i not in self.shared}
            function = f"{piece.function.__module__}:{piece.function.__name__}"
            self.hatch.hand_over(self.sent, function, Parcel.of(own))
            self.sent += 1

    def _report(self) -> None:
        self.finished += 1
        total = len(self.pieces)
        left = (time.monotonic() - self.started) / self.finished * (total - self.finished)
        self.report.progress(self.finished, total, "pieces", left)
