"""The server's storage as a folder of this machine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from workers.contract import StorageFacts
from workers.storage.base import Limit


class SharedDesk:
    """See `workers.storage.base.Desk`: every path is what it is."""

    shared = True
    words = "The server's files are a folder of this machine."

    def here(self, path: str) -> str:
        return path

    def there(self, path: str) -> str:
        return path

    def file(self, path: str) -> str:
        return path

    def folder(self, path: str, pattern: str = "*") -> str:
        return path

    def newest(self, path: str, pattern: str) -> Sequence[str]:
        found = Path(path).glob(pattern)
        return [each.name for each in sorted(found, key=lambda each: each.stat().st_mtime_ns, reverse=True)]

    def watch(self, folder: str) -> None:
        pass

    def deliver(self, names: Sequence[str], limit: Limit, say: Callable[[str], None]) -> bool:
        return True

    def settled(self, artifacts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(artifacts)


class SharedStorage:
    """See `workers.storage.base.Storage`."""

    shared = True

    def __init__(self, facts: StorageFacts | None = None) -> None:
        self.facts = facts

    @contextmanager
    def desk(self, attempt: str, claim: str, stopping: Event, node: int = 0) -> Iterator[SharedDesk]:
        yield SharedDesk()
