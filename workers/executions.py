"""What runs on a worker, as its agent sees it: attempts with their drivers, and pieces of attempts."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from workers.contract import Outcome


@dataclass
class Execution:
    """An attempt that holds its claim and runs here."""

    attempt: str
    claim: str
    stop: Callable[[], None]
    grace_seconds: float = 0.0
    """How long it may take to end in good order when its worker leaves."""
    stopping: threading.Event = field(default_factory=threading.Event)
    acknowledged: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None
    numbered: int = 0


@dataclass
class Ticket:
    """A piece that is computed here for an attempt whose driver may be elsewhere."""

    attempt: str
    claim: str
    grace_seconds: float = 0.0
    """As an execution's."""
    stopping: threading.Event = field(default_factory=threading.Event)
    _stop: Callable[[], None] | None = None

    def stop_with(self, stop: Callable[[], None]) -> None:
        """What ends the piece; called at once if it was to stop already."""
        self._stop = stop
        if self.stopping.is_set():
            stop()

    def stop(self) -> None:
        if not self.stopping.is_set():
            self.stopping.set()
            if self._stop:
                self._stop()
