"""Two ways to `/keys` for the command line, which are one: the same requests as the operator, over HOME's socket or within this process."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx

from app.keys.operators import operators_door, short_path
from app.locks import FolderTaken, Holder, lock_home
from app.services import build, prepare_database
from app.settings import Settings
from app.starting import CannotStart

PATIENCE_SECONDS: Final = 30.0
"""A server that starts or stops holds the lock, and does not answer."""


@contextlib.asynccontextmanager
async def operator(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client that asks as the operator."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock_home(settings.home, Holder.KEYS))
                transport: httpx.AsyncBaseTransport = stack.enter_context(_in_its_place(settings))
                break
            except FolderTaken as taken:
                if address := _socket(settings, stack):
                    transport = httpx.AsyncHTTPTransport(uds=address)
                    break
                if time.monotonic() > deadline:
                    raise CannotStart(f"{taken} It does not answer the command line.") from None
                await asyncio.sleep(0.1)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            yield client


@contextlib.contextmanager
def _in_its_place(settings: Settings) -> Iterator[httpx.ASGITransport]:
    """The server's own routes within this process, of which only the database is started."""
    from app.main import create_app

    prepare_database(settings)
    app = create_app(settings)
    app.state.services = house = build(settings)
    house.writer.start()
    try:
        yield httpx.ASGITransport(operators_door(app))
    finally:
        house.writer.close()


def _socket(settings: Settings, stack: contextlib.ExitStack) -> str | None:
    """The path at which a running server answers; None while it does not."""
    address = stack.enter_context(short_path(settings.home))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
        try:
            attempt.connect(address)
        except PermissionError:
            raise CannotStart(f"only the owner of {settings.home.resolve()} may do this.") from None
        except OSError:
            return None
    return address
