"""Reading: short sessions on read-only connections, off the event loop. No session stays open over a stream."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Engine
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

T = TypeVar("T")


class Reader:
    """Runs a query function in one consistent snapshot and closes it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def call(self, query: Callable[[Session], T]) -> T:
        with Session(self._engine, expire_on_commit=False) as session:
            return query(session)

    async def run(self, query: Callable[[Session], T]) -> T:
        return await run_in_threadpool(self.call, query)
