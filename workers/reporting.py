"""What an implementation says while it works: the narrow side of a worker's event stream."""

from typing import Any, Protocol


class Reporter(Protocol):
    """Where a running job speaks; calls are cheap and never raise."""

    def phase(self, name: str) -> None:
        """A new phase begins: `loading`, `computing`, `verifying`, `saving`."""

    def progress(
        self, done: int, total: int, unit: str, eta_seconds: float | None = None, fraction: float | None = None
    ) -> None:
        """`done` of `total` units of the current phase are finished; `fraction` says how much that is where units differ in size."""

    def warning(self, message: str, **data: Any) -> None:
        """Something the user should know about the result; `data` is JSON-able."""

    def log(self, message: str) -> None:
        """A line of the job's log."""


class Silent:
    """A reporter that keeps nothing."""

    def phase(self, name: str) -> None: ...

    def progress(
        self, done: int, total: int, unit: str, eta_seconds: float | None = None, fraction: float | None = None
    ) -> None: ...

    def warning(self, message: str, **data: Any) -> None: ...

    def log(self, message: str) -> None: ...
