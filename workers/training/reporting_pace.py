"""Where a training is: what its progress is made of."""

import math
import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Pace:
    """Where training is. Written by the training thread at every batch, at the price of a few assignments; read by the reporter's."""

    stage: str = "starting"
    beats: int = 0
    """Batches of any stage in this process."""
    step: int = 0
    epoch: int = 0
    done: int = 0
    total: int = 0
    """Steps of the stage, 0 where nobody knows."""
    begun: float = 0.0
    """When the stage began, and `first`, how many steps were done then."""
    first: int = 0

    def begin(self, stage: str, total: float, done: int = 0) -> None:
        self.stage, self.total, self.done, self.first = stage, _whole(total), done, done
        self.begun = time.monotonic()

    def progress(self) -> dict[str, Any]:
        rate = (self.done - self.first) / max(time.monotonic() - self.begun, 1e-9)
        left = (self.total - self.done) / rate if self.total and rate else None
        return {
            "fraction": min(self.done / self.total, 1.0) if self.total else 0.0,
            "done": self.done,
            "total": self.total,
            "unit": "steps",
            "eta_seconds": left if left is None else max(left, 0.0),
            "epoch": self.epoch,
            "step": self.step,
            "steps_per_second": rate,
        }


def _whole(total: float) -> int:
    return int(total) if math.isfinite(total) and total > 0 else 0
