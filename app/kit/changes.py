"""Waiting for something to change, without polling and without holding a connection."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Changes:
    """Topics that can be listened to. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        """Deliver on the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    @contextmanager
    def listen(self, topic: str) -> Iterator[asyncio.Event]:
        """An event that is set at every change of `topic` while the block lasts. Listen first, then look, then wait."""
        event = asyncio.Event()
        self._listeners[topic].add(event)
        try:
            yield event
        finally:
            self._listeners[topic].discard(event)
            if not self._listeners[topic]:
                del self._listeners[topic]

    def publish(self, topics: set[str]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set, topics)

    def _set(self, topics: set[str]) -> None:
        for topic in topics:
            for event in self._listeners.get(topic, ()):
                event.set()
