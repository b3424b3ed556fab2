"""The server's doors for files, as one worker calls them."""

import logging
import math
import time
from collections.abc import Callable
from threading import Event
from typing import Any, Final, TypeVar
from urllib.parse import quote

from workers.contract import FileFacts
from workers.link import Link, ServerAway
from workers.storage.base import Interrupted, Limit
from workers.storage.outgoing import PART_BYTES, Parcel

log = logging.getLogger(__name__)

T = TypeVar("T")
FILE_SECONDS: Final = 60.0
"""Without a byte for so long, a transfer is broken off and tried again."""
PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.1
TELL_SECONDS: Final = 10.0


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

    def put(self, name: str, parcel: Parcel, check: Callable[[], None]) -> None:
        """Send a file; `check` is called now and then, and may raise."""
        fields = {
            "Content-Length": str(parcel.size),
            "Content-Type": "application/octet-stream",
            "Tidemill-SHA256": parcel.sha256,
            "Tidemill-Modified": str(parcel.modified_ns),
        }
        self._send("PUT", f"files/{quote(name)}", content=parcel.parts(check), headers=fields)

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


def persistently(call: Callable[[], T], limit: Limit, say: Callable[[str], None] = log.info) -> T:
    """What `call` returns, tried again while the server is away. Raises Interrupted once the clock is past the limit.

    say: is told once why it takes so long.
    """
    began, told, pause = time.monotonic(), False, PAUSE_SECONDS
    while True:
        try:
            return call()
        except ServerAway as away:
            log.info("the server is away (%s); trying again", away)
            until = limit()
            if until is not None and time.monotonic() > until:
                raise Interrupted from away
            if not told and time.monotonic() - began > TELL_SECONDS:
                told = True
                say(f"The server does not take, or give, this job's files ({away}); trying again until it does.")
            wait_until(time.monotonic() + pause, limit)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def wait_until(moment: float, limit: Limit) -> None:
    """Wait, no longer than the limit allows."""
    while (left := min(moment, _or_never(limit())) - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_SECONDS))


def _or_never(until: float | None) -> float:
    return math.inf if until is None else until


class Hurry:
    """A limit: so many seconds after each of these events was first seen."""

    def __init__(self, *events: tuple[Event, float]) -> None:
        self._events, self._seen = events, dict[int, float]()

    def __call__(self) -> float | None:
        for number, (event, seconds) in enumerate(self._events):
            if event.is_set():
                self._seen.setdefault(number, time.monotonic() + seconds)
        return min(self._seen.values(), default=None)
