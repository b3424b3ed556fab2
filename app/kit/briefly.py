"""Answers that are kept for a moment, so that who asks often, or all at once, costs no more than who asks now and then."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Briefly(Generic[T]):
    """One answer, kept for `seconds`. However many ask meanwhile, it is found out once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: tuple[float, T] | None = None
        self._asking = asyncio.Lock()

    def keep(self, answer: T) -> T:
        """Take `answer`, which somebody just found out, for the newest."""
        self._kept = (time.monotonic(), answer)
        return answer

    async def get(self, find_out: Callable[[], Awaitable[T]]) -> T:
        async with self._asking:
            if self._kept and time.monotonic() - self._kept[0] < self._seconds:
                return self._kept[1]
            return self.keep(await find_out())
