"""A worker's computing threads: one whole job or one piece at a time, first come, first served.

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


@dataclass
class _Ticket:
    whole: bool


class Slot:
    """Taken by one at a time. A whole job waits as long as it takes; a piece does not wait for a whole job at all."""

    def __init__(self) -> None:
        self._line: deque[_Ticket] = deque()
        """Who holds it, and behind them those who wait."""
        self._changed = threading.Condition()

    @contextmanager
    def whole(self, unless: threading.Event) -> Iterator[bool]:
        """Hold the slot for a job that runs here as a whole; false once `unless` is set before its turn came."""
        ticket = _Ticket(whole=True)
        with self._changed:
            self._line.append(ticket)
            while self._line[0] is not ticket and not unless.is_set():
                self._changed.wait(0.2)
            mine = self._line[0] is ticket
        try:
            yield mine and not unless.is_set()
        finally:
            self._leave(ticket)

    @contextmanager
    def piece(self, patience_seconds: float = PIECE_PATIENCE_SECONDS) -> Iterator[bool]:
        """Hold the slot for one piece; false when a whole job has it, waits for it, or others take too long."""
        ticket, deadline = _Ticket(whole=False), time.monotonic() + patience_seconds
        with self._changed:
            self._line.append(ticket)
            while self._line[0] is not ticket and not self._whole_ahead_of(ticket) and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            mine = self._line[0] is ticket
        try:
            yield mine
        finally:
            self._leave(ticket)

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
