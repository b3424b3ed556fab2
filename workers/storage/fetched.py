"""The server's storage over HTTP: what an attempt reads is fetched into a folder of its own, laid out as the server's; what it writes
there is put back."""

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from workers.contract import FileFacts, StorageFacts
from workers.failures import InvalidInput
from workers.link import Link, Refused, Unknown
from workers.storage.base import Limit, StorageLost
from workers.storage.cache import Cache, Damaged, Write, written
from workers.storage.courier import Courier
from workers.storage.depot import Depot, Hurry, persistently
from workers.storage.outgoing import is_log

log = logging.getLogger(__name__)

T = TypeVar("T")
TRIES: Final = 3
LASTING: Final = ("datasets", "sources")
"""Folders whose files never change: they are kept for other attempts."""


class HttpDesk:
    """See `workers.storage.base.Desk`."""

    shared = False

    def __init__(self, root: Path, server: str, depot: Depot, cache: Cache, stopping: threading.Event) -> None:
        self._root, self._server, self._depot, self._cache, self._stopping = root, server, depot, cache, stopping
        self._there: set[str] = set()
        self._courier: Courier | None = None
        self.files = self.bytes = self.known = 0
        """How many files were brought, of how many bytes, and how many of them were in the cache."""

    @property
    def words(self) -> str:
        known = f", {self.known} of them known from before" if self.known else ""
        return f"The server's files came over HTTP: {self.files}, of {self.bytes:,} bytes{known}."

    def here(self, path: str) -> str:
        return str(self._root / self._name(path)) if self._is_servers(path) else path

    def there(self, path: str) -> str:
        where = Path(path)
        return str(Path(self._server, where.relative_to(self._root))) if where.is_relative_to(self._root) else path

    def _is_servers(self, path: str) -> bool:
        return PurePosixPath(path).is_relative_to(self._server)

    def _name(self, path: str) -> str:
        return str(PurePosixPath(path).relative_to(self._server))

    # ---- fetching ----------------------------------------------------------------------------------------------

    def file(self, path: str) -> str:
        if self._is_servers(path) and self._name(path) not in self._there:
            found = self._facts(path)
            if [each.name for each in found] != [self._name(path)]:
                raise InvalidInput(f"The server no longer has the file {self._name(path)!r} that this job reads.")
            self._bring(found[0])
        return self.here(path)

    def folder(self, path: str, pattern: str = "*") -> str:
        found = self._facts(path)
        if [each.name for each in found] != [self._name(path)]:
            Path(self.here(path)).mkdir(parents=True, exist_ok=True)
        for each in found:
            if fnmatch(PurePosixPath(each.name).name, pattern) and each.name not in self._there:
                self._bring(each)
        return self.here(path)

    def newest(self, path: str, pattern: str) -> Sequence[str]:
        changed: dict[str, int] = {}
        for each in self._facts(path):
            parts = PurePosixPath(each.name).relative_to(self._name(path)).parts
            fitting = next((i for i, part in enumerate(parts) if fnmatch(part, pattern)), None)
            if fitting is not None and not any(part.startswith(".") for part in parts):
                name = "/".join(parts[: fitting + 1])
                changed[name] = max(each.modified_ns, changed.get(name, 0))
        return sorted(changed, key=lambda name: changed[name], reverse=True)

    def _facts(self, path: str) -> list[FileFacts]:
        return self._persistently(lambda: self._depot.facts(self._name(path)))

    def _bring(self, facts: FileFacts) -> None:
        target, write = self._root / facts.name, partial(self._depot.fetch, facts.name, unless=self._stopping)
        for attempt in range(TRIES):
            try:
                if PurePosixPath(facts.name).parts[0] in LASTING:
                    self.known += self._persistently(
                        lambda: self._cache.place(facts.sha256, facts.bytes, target, write)
                    )
                else:
                    self._persistently(lambda: _download(target, facts, write))
                break
            except Damaged as fault:
                log.warning("%s; fetching it again", fault)
                if attempt == TRIES - 1:
                    raise StorageLost(f"The file {facts.name!r} came damaged {TRIES} times.") from fault
        self._there.add(facts.name)
        self.files, self.bytes = self.files + 1, self.bytes + facts.bytes

    def _persistently(self, call: Callable[[], T]) -> T:
        try:
            return persistently(call, Hurry((self._stopping, 0.0)))
        except Unknown as gone:
            raise InvalidInput(f"The server no longer has a file that this job reads: {gone}") from gone
        except Refused as refusal:
            raise StorageLost(f"The server did not give a file: {refusal}") from refusal

    # ---- putting back ------------------------------------------------------------------------------------------

    def watch(self, folder: str) -> None:
        self._courier = Courier(self._depot, Path(folder))
        self._courier.start()

    def deliver(self, names: Sequence[str], limit: Limit, say: Callable[[str], None]) -> bool:
        if self._courier is None:
            return True
        try:
            return self._courier.deliver(names, limit, say)
        except Refused as refusal:
            raise StorageLost(f"The server did not take this attempt's files: {refusal}") from refusal

    def settled(self, artifacts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._as_there(each) if is_log(str(each["name"])) else each for each in artifacts]

    def _as_there(self, artifact: dict[str, Any]) -> dict[str, Any]:
        assert self._courier is not None
        path = self.there(str(self._courier.folder / str(artifact["name"])))
        found = self._facts(path)
        return {**artifact, "bytes": found[0].bytes, "sha256": found[0].sha256} if found else artifact

    def close(self) -> None:
        if self._courier:
            self._courier.close()
        shutil.rmtree(self._root, ignore_errors=True)


def _download(target: Path, facts: FileFacts, write: Write) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if written(target, write) != facts.sha256:
        raise Damaged(f"{target.name} came damaged")
    os.utime(target, ns=(facts.modified_ns, facts.modified_ns))


class HttpStorage:
    """See `workers.storage.base.Storage`."""

    shared = False

    def __init__(self, link: Link, facts: StorageFacts, cache: Cache, spool: Path) -> None:
        """spool: a folder of this process alone, on the disk of the cache."""
        self.facts, self._link, self._cache, self._spool = facts, link, cache, spool

    @contextlib.contextmanager
    def desk(self, attempt: str, claim: str, stopping: threading.Event, node: int = 0) -> Iterator[HttpDesk]:
        root = self._spool / f"{attempt}.{node}"
        shutil.rmtree(root, ignore_errors=True)
        desk = HttpDesk(root, self.facts.path, Depot(self._link, attempt, claim, node), self._cache, stopping)
        try:
            yield desk
        finally:
            desk.close()
