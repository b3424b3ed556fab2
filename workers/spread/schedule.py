"""Which piece of a batch runs where: no I/O, no clock of its own, so that every course of events can be tested.

A worker holds the pieces that its threads compute, and one at hand. A lost worker's pieces go back to the front of the line; a
busy worker is left alone for a moment; a new worker gets pieces at the next look.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

AT_HAND: Final = 1
"""Pieces that a worker holds beyond those it computes."""
REST_SECONDS: Final = 0.25
"""How long a worker that was busy is not asked again."""
MOST_LOSSES: Final = 4
"""So many workers lost under one piece are its own doing."""


class PieceKillsWorkers(Exception):
    """The same piece was lost with one worker after another."""


@dataclass
class Schedule:
    """The pieces of one batch that were handed over so far."""

    waiting: deque[int] = field(default_factory=deque)
    running: dict[int, str] = field(default_factory=dict)
    """piece → worker."""
    resting: dict[str, float] = field(default_factory=dict)
    """worker → when it may be asked again."""
    losses: dict[int, int] = field(default_factory=dict)

    def add(self, piece: int) -> None:
        self.waiting.append(piece)

    def place(self, workers: Mapping[str, int], now: float) -> list[tuple[int, str]]:
        """What to submit now: the earliest pieces, to the workers with the most room.

        workers: how many pieces each computes at once.
        """
        room = {each: workers[each] + AT_HAND for each in sorted(workers) if self.resting.get(each, 0.0) <= now}
        for worker in self.running.values():
            if worker in room:
                room[worker] -= 1
        placed = []
        while self.waiting and room:
            worker = max(room, key=lambda each: room[each])
            if room[worker] <= 0:
                break
            piece = self.waiting.popleft()
            self.running[piece] = worker
            room[worker] -= 1
            placed.append((piece, worker))
        return placed

    def done(self, piece: int) -> None:
        self.running.pop(piece, None)

    def busy(self, piece: int, now: float) -> None:
        """The worker could not take it now: the piece waits again, at the front."""
        if worker := self.running.pop(piece, None):
            self.resting[worker] = now + REST_SECONDS
            self.waiting.appendleft(piece)

    def lost(self, piece: int) -> None:
        """Its worker is gone. Raises PieceKillsWorkers when that happened too often."""
        if self.running.pop(piece, None) is None:
            return
        self.losses[piece] = self.losses.get(piece, 0) + 1
        if self.losses[piece] >= MOST_LOSSES:
            raise PieceKillsWorkers(f"Piece {piece} was lost with {self.losses[piece]} workers, one after the other.")
        self.waiting.appendleft(piece)

    def on_lost_workers(self, workers: Iterable[str]) -> list[int]:
        """The pieces that run on workers which are not among `workers` any more."""
        here = set(workers)
        return [piece for piece, worker in self.running.items() if worker not in here]
