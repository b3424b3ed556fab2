"""A child's reports on their way to its worker: one JSON message a line, on the pipe it was born with."""

import json
import os
from typing import Any


class PipeReporter:
    """The `Reporter` of a forked child."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def phase(self, name: str) -> None:
        self._send("phase", {"phase": name})

    def progress(
        self, done: int, total: int, unit: str, eta_seconds: float | None = None, fraction: float | None = None
    ) -> None:
        if fraction is None:
            fraction = done / total if total else 0.0
        self._send(
            "progress", {"fraction": fraction, "done": done, "total": total, "unit": unit, "eta_seconds": eta_seconds}
        )

    def warning(self, message: str, **data: Any) -> None:
        self._send("warning", {"message": message, **data})

    def log(self, message: str) -> None:
        print(message)  # noqa: T201 - the child's standard output is the job's log
        self._send("log", {"message": message})

    def returned(self, value: Any) -> None:
        self._write({"type": "returned", "value": value})

    def raised(self, problem: dict[str, Any]) -> None:
        self._write({"type": "raised", "problem": problem})

    def _send(self, kind: str, data: dict[str, Any]) -> None:
        self._write({"type": kind, "data": data})

    def _write(self, message: dict[str, Any]) -> None:
        # An unpaired surrogate, as a file name may hold, has no UTF-8, and would not pass the server's door either.
        line = json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
        view = memoryview(line + b"\n")
        while view:
            view = view[os.write(self._descriptor, view) :]
