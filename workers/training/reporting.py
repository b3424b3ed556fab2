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
from typing import Any

from workers.pipe import PipeReporter
from workers.training.reporting_pace import Pace
from workers.training.spec import SHARED_LOG

WRITE_SECONDS = 0.1
BEAT_SECONDS = 1.0
ARTIFACT_SECONDS = 5.0
PIPE_BYTES = 1 << 20
MAX_WAITING = 100_000
"""Messages that wait for a worker which does not read; more are dropped rather than remembered for ever."""
MAX_LINES, MAX_CHARACTERS = 300, 2_000
"""Of what a rank prints, so much becomes events."""
BURST, PER_SECOND = 2_000, 50
"""So many metric events at once, and so many a second in the long run. `metrics.csv` has all of them."""


class RankReporter:
    """A rank's voice. Rank 0 tells of the whole training, the others only of themselves."""

    def __init__(self, pipe: PipeReporter, rank: int) -> None:
        self._pipe, self.rank, self.pace = pipe, rank, Pace()
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_WAITING)
        self._closing = threading.Event()
        self._beaten, self._looked, self._lines = 0, 0.0, 0
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
        self._lines += 1
        if self._lines <= MAX_LINES:
            self._say("log", {"message": message[:MAX_CHARACTERS], "rank": self.rank})
        elif self._lines == MAX_LINES + 1:
            told = f"Rank {self.rank} says more in {SHARED_LOG}; here it is not shown."
            self._say("log", {"message": told, "rank": self.rank})

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
