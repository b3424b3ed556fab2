"""The port: what an attempt, or a node of one, wants of the server's storage on this worker."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import Any, Protocol

from workers.contract import StorageFacts
from workers.failures import JobFailure

Limit = Callable[[], float | None]
"""Until when, by `time.monotonic()`, something may be tried; None while there is no end to that."""


class StorageLost(JobFailure):
    """The server does not let this attempt read or write its files any longer."""


class Desk(Protocol):
    """The files of one attempt on this worker. Paths of the server's begin with its storage; paths here may be others."""

    @property
    def shared(self) -> bool:
        """Whether they are the server's own files."""
        ...

    @property
    def words(self) -> str:
        """What was fetched, in a sentence."""
        ...

    def here(self, path: str) -> str:
        """Where a path of the server's is on this machine; whether or not anything is there yet."""
        ...

    def there(self, path: str) -> str:
        """The inverse of `here`; any other path comes back as it is."""
        ...

    def file(self, path: str) -> str:
        """`here`, with the file there to be read. Raises StorageLost, Interrupted."""
        ...

    def folder(self, path: str, pattern: str = "*") -> str:
        """`here`, with those files of the folder to be read whose names match; a folder that the server has not is empty. What turns
        out to be a file is one."""
        ...

    def newest(self, path: str, pattern: str) -> Sequence[str]:
        """Names of the files, or folders, of a folder of the server's that match, the newest first; none of them need be here."""
        ...

    def watch(self, folder: str) -> None:
        """From here on, the server gets what is written below this folder (a path here) as it comes: logs and checkpoints."""
        ...

    def deliver(self, names: Sequence[str], limit: Limit, say: Callable[[str], None]) -> bool:
        """Have the server get all of it that it shall keep: logs, checkpoints, and the files of these names. False where that was not
        done before the limit; `say` is told what keeps it. Raises StorageLost."""
        ...

    def settled(self, artifacts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Artifacts with the sizes and hashes that the server has of them; logs may have grown there by what other nodes wrote."""
        ...


class Storage(Protocol):
    """The server's storage, for this worker."""

    @property
    def facts(self) -> StorageFacts | None:
        """Where the server said that it is; None where nobody asked."""
        ...

    @property
    def shared(self) -> bool: ...

    def desk(self, attempt: str, claim: str, stopping: Event, node: int = 0) -> AbstractContextManager[Desk]:
        """For an attempt that holds its claim. What was fetched for it goes with the context."""
        ...


class Interrupted(Exception):
    """The attempt is to stop; nothing more is fetched."""
