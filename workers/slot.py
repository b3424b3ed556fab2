"""A worker's computing threads: one whole job, one of STUMPY's pieces, or a tile on each thread; first come, first served.

So no two of STUMPY's kernels ever run at once in one worker, and the machine's cores are never promised twice.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

PIECE_PATIENCE_SECONDS: Final = 5.0
"""How long a piece waits behind other pieces before it looks for another worker."""


@dataclass(eq=False)
class _Ticket:
    threads: int
    whole: bool = False


class Slot:
    """So many threads. A whole job takes all and waits as long as it takes; a piece does not wait for a whole job at all."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._line: deque[_Ticket] = deque()
        """Who computes, and behind them those who wait."""
        self._changed = threading.Condition()

    @contextmanager
    def whole(self, unless: threading.Event) -> Iterator[bool]:
        """Hold all threads for a job that runs here as a whole; false once `unless` is set before its turn came."""
        ticket = _Ticket(self.threads, whole=True)
        with self._changed:
            self._line.append(ticket)
            while not self._has_room(ticket) and not unless.is_set():
                self._changed.wait(0.2)
            mine = self._has_room(ticket)
        try:
            yield mine and not unless.is_set()
        finally:
            self._leave(ticket)

    @contextmanager
    def piece(self, patience_seconds: float = PIECE_PATIENCE_SECONDS, threads: int | None = None) -> Iterator[bool]:
        """Hold so many threads, or all, for one piece; false when a whole job has them, waits for them, or others take too long."""
        ticket, deadline = _Ticket(threads or self.threads), time.monotonic() + patience_seconds
        with self._changed:
            self._line.append(ticket)
            while not self._has_room(ticket) and not self._whole_ahead_of(ticket) and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            mine = self._has_room(ticket)
        try:
            yield mine
        finally:
            self._leave(ticket)

    def _has_room(self, ticket: _Ticket) -> bool:
        """Whether the threads suffice for everybody ahead of `ticket` and for it."""
        taken = 0
        for each in self._line:
            taken += each.threads
            if each is ticket:
                break
        return taken <= self.threads

    def _whole_ahead_of(self, ticket: _Ticket) -> bool:
        for each in self._line:
            if each is ticket:
                return False
            if each.whole:
                return True
        return False

    def _leave(self, ticket: _Ticket) -> None:
        with self._changed:
            self._line = deque(each for each in self._line if each is not ticket)
            self._changed.notify_all()
