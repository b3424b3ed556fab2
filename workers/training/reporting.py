"""What a rank tells while it trains. Training only hands over; a thread of the reporter's own writes, throttles and counts."""

import contextlib
import fcntl
import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workers.pipe import PipeReporter

WRITE_SECONDS = 0.1
BEAT_SECONDS = 1.0
ARTIFACT_SECONDS = 5.0
PIPE_BYTES = 1 << 20
MAX_WAITING = 100_000
"""Messages that wait for a worker which does not read; more are dropped rather than remembered for ever."""
BURST, PER_SECOND = 2_000, 50
"""So many metric events at once, and so many a second in the long run. `metrics.csv` has all of them."""


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


class RankReporter:
    """A rank's voice. Rank 0 tells of the whole training, the others only of themselves."""

    def __init__(self, pipe: PipeReporter, rank: int) -> None:
        self._pipe, self.rank, self.pace = pipe, rank, Pace()
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_WAITING)
        self._closing = threading.Event()
        self._beaten, self._looked, self._written = 0, 0.0, -1
        self._tokens, self._filled = float(BURST), time.monotonic()
        self._artifacts: dict[str, float] = {}
        self.each_second: Callable[[], None] | None = None
        """Called by the reporter's thread, also while training waits for another rank."""
        with contextlib.suppress(OSError, AttributeError):  # a small pipe is only slower
            fcntl.fcntl(pipe._descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._thread = threading.Thread(target=self._write, name="reporter", daemon=True)
        self._thread.start()

    def phase(self, name: str) -> None:
        self._say("phase", {"phase": name})

    def warning(self, message: str, **data: Any) -> None:
        self._say("warning", {"message": message, "rank": self.rank, **data})

    def line(self, message: str) -> None:
        """A line that was printed, and is in the logs already."""
        self._say("log", {"message": message, "rank": self.rank})

    def metric(self, name: str, value: float, step: int, epoch: int | None) -> bool:
        """False when there were too many lately, and this one was left out."""
        now = time.monotonic()
        self._tokens = min(float(BURST), self._tokens + (now - self._filled) * PER_SECOND)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        self._say(
            "metric", {"name": name, "value": value if math.isfinite(value) else None, "step": step, "epoch": epoch}
        )
        return True

    def artifact(self, name: str, size: int) -> None:
        """A file was written. One that is written again and again is told of now and then."""
        now = time.monotonic()
        if now - self._artifacts.get(name, -math.inf) >= ARTIFACT_SECONDS:
            self._artifacts[name] = now
            self._say("artifact", {"name": name, "bytes": size})

    def close(self) -> None:
        """Everything said is written when this returns, unless the worker has stopped reading."""
        self._closing.set()
        self._thread.join(30)

    def _say(self, kind: str, data: dict[str, Any]) -> None:
        self._waiting.append((kind, data))

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # the worker is gone, and this process soon
            while not self._closing.wait(WRITE_SECONDS):
                self._drain()
            self._looked = 0.0
            self._drain()

    def _drain(self) -> None:
        self._beat()
        lines = []
        while self._waiting:
            kind, data = self._waiting.popleft()
            lines.append(json.dumps({"type": kind, "data": strict(data)}, ensure_ascii=False, allow_nan=False))
        if lines:
            view = memoryview(("\n".join(lines) + "\n").encode("utf-8", "replace"))
            while view:
                view = view[os.write(self._pipe._descriptor, view) :]

    def _beat(self) -> None:
        """Say that batches go on, once a second while they do; of rank 0, also how far."""
        now, beats = time.monotonic(), self.pace.beats
        if now - self._looked < BEAT_SECONDS:
            return
        self._looked = now
        if self.each_second:
            self.each_second()
        if beats == self._beaten:
            return
        self._beaten = beats
        self._say("beat", {"rank": self.rank, "step": self.pace.step, "stage": self.pace.stage})
        if self.rank == 0:
            self._say("progress", self.pace.progress())


def strict(data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in data.items()}


def _whole(total: float) -> int:
    return int(total) if math.isfinite(total) and total > 0 else 0
