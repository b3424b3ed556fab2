"""What a rank prints: kept in its own file, repeated line by line in the job's shared log, and told as it happens, up to a limit."""

import io
import logging
import os
import sys
from typing import BinaryIO, TextIO

from workers.training.reporting import RankReporter
from workers.training.spec import SHARED_LOG, RankSpec

MAX_PENDING = 8_192
"""Of a line without an end, so many characters wait for it; then they are a line."""


class Echo(io.TextIOBase):
    """Standard output or error of a rank. `own` is what it was: the rank's log."""

    def __init__(self, own: TextIO, shared: int, prefix: str, reporter: RankReporter) -> None:
        self._own, self._shared, self._prefix, self._reporter = own, shared, prefix, reporter
        self._pid, self._begun = os.getpid(), list[str]()
        self._pending = 0

    def write(self, text: str) -> int:
        self._own.write(text)
        *lines, rest = text.split("\n")
        for line in lines:
            self._line("".join((*self._begun, line)))
            self._begun, self._pending = [], 0
        self._begun.append(rest)
        self._pending += len(rest)
        if self._pending > MAX_PENDING:
            self._cut()
        return len(text)

    def _cut(self) -> None:
        whole = "".join(self._begun)
        bar = whole.rpartition("\r")[2]
        if bar == whole or len(bar) > MAX_PENDING:
            self._line(whole)
            bar = ""
        self._begun, self._pending = [bar], len(bar)

    def _line(self, line: str) -> None:
        # A progress bar draws over its line; what stays to be read is its last state.
        line = line.rstrip().rpartition("\r")[2]
        if not line:
            return
        # One write each: appends of several ranks do not mix.
        os.write(self._shared, f"{self._prefix}{line}\n".encode("utf-8", "backslashreplace"))
        if os.getpid() != self._pid:
            return  # a DataLoader's worker: the pipe is its rank's
        self._reporter.line(line)

    def flush(self) -> None:
        self._own.flush()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._own.fileno()

    @property
    def buffer(self) -> BinaryIO:
        """Bytes go to the rank's own log alone."""
        return self._own.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


class NoTips(logging.Filter):
    """Lightning advertises other products in its log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "💡" not in record.getMessage()


def echo(spec: RankSpec, reporter: RankReporter) -> None:
    """From here on, what this process prints is also in the shared log."""
    shared = os.open(os.path.join(spec.folder, SHARED_LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    prefix = f"[rank {spec.rank}] " if spec.world_size > 1 else ""
    before = (sys.stdout, sys.stderr)
    sys.stdout = Echo(sys.stdout, shared, prefix, reporter)
    sys.stderr = Echo(sys.stderr, shared, prefix, reporter)
    # Handlers made before the fork hold the streams of then.
    for logger in (logging.getLogger(), *map(logging.getLogger, list(logging.Logger.manager.loggerDict))):
        for handler in logger.handlers:
            if type(handler) is logging.StreamHandler:
                handler.setStream(sys.stdout if handler.stream is before[0] else sys.stderr)
                handler.addFilter(NoTips())
