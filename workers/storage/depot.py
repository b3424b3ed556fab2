"""The server's doors for files, as one worker calls them."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import IO, Any, Final, TypeVar
from urllib.parse import quote

from workers.contract import FileFacts
from workers.link import Link, ServerAway
from workers.storage.base import Interrupted

log = logging.getLogger(__name__)

T = TypeVar("T")
PART_BYTES: Final = 1 << 20
FILE_SECONDS: Final = 60.0
"""Without a byte for so long, a transfer is broken off and tried again."""
PAUSE_SECONDS: Final = 0.5


class Depot:
    """Reads the storage, and writes into one attempt's folder. Every call raises ServerAway or Refused."""

    def __init__(self, link: Link, attempt: str, claim: str, node: int) -> None:
        self._link, self._claim, self._node = link, claim, node
        self._attempt = f"/internal/attempts/{attempt}"

    def facts(self, name: str) -> list[FileFacts]:
        """Of a file, or of all below a folder; none where nothing is."""
        answer = self._link.send("GET", f"/internal/facts/{quote(name)}", timeout=FILE_SECONDS).json()
        return [FileFacts.model_validate(each) for each in answer]

    def fetch(self, name: str, take: Callable[[bytes], None], unless: Event) -> None:
        """Hand over a file's bytes. Raises Interrupted."""
        with self._link.receive(f"/internal/files/{quote(name)}") as answer:
            for part in answer.iter_bytes(PART_BYTES):
                if unless.is_set():
                    raise Interrupted
                take(part)

    def put(self, name: str, file: IO[bytes], size: int, sha256: str, modified_ns: int) -> None:
        fields = {
            "Content-Length": str(size),
            "Content-Type": "application/octet-stream",
            "Tidemill-SHA256": sha256,
            "Tidemill-Modified": str(modified_ns),
        }
        self._send("PUT", f"files/{quote(name)}", content=_parts(file, size), headers=fields)

    def extend(self, name: str, offset: int, part: bytes) -> int:
        """Add to a log what this node wrote at `offset`. Returns how much of this node's is there."""
        fields = {"Content-Type": "application/octet-stream"}
        told = {"offset": offset, "node": self._node}
        return int(self._send("POST", f"files/{quote(name)}", content=part, headers=fields, params=told).json())

    def move(self, name: str, to: str) -> None:
        self._send("POST", f"moves/{quote(name)}", json={"to": to})

    def delete(self, name: str) -> None:
        self._send("DELETE", f"files/{quote(name)}")

    def _send(self, method: str, path: str, params: dict[str, Any] | None = None, **parts: Any) -> Any:
        told = {"claim": self._claim, **(params or {})}
        return self._link.send(method, f"{self._attempt}/{path}", params=told, timeout=FILE_SECONDS, **parts)


def _parts(file: IO[bytes], size: int) -> Iterator[bytes]:
    """As many bytes as were told, however the file grows meanwhile."""
    while size and (part := file.read(min(size, PART_BYTES))):
        size -= len(part)
        yield part


def persistently(call: Callable[[], T], unless: Event, until: float | None = None) -> T:
    """What `call` returns, tried again while the server is away. Raises Interrupted once `unless` is set, or the clock is at `until`."""
    while True:
        try:
            return call()
        except ServerAway as away:
            if unless.is_set() or (until is not None and time.monotonic() > until):
                raise Interrupted from away
            log.info("the server is away (%s); trying again", away)
            unless.wait(PAUSE_SECONDS)


def quietly(call: Callable[[], object]) -> None:
    """For what may as well be done later, or never."""
    with contextlib.suppress(ServerAway):
        call()
