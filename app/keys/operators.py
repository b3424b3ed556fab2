"""HOME's socket: how the command line of HOME's owner reaches a running server, whatever keys there are, for keys and nothing else."""

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from app.callers import CALLER, OPERATOR
from app.kit.problems import NotFound

SOCKET: Final = "operator.sock"


@contextlib.contextmanager
def short_path(home: Path) -> Iterator[str]:
    """The socket's path by way of an open folder: the system takes no more than 107 bytes, and HOME may lie deeper."""
    folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)


@contextlib.contextmanager
def listening(home: Path) -> Iterator[socket.socket]:
    """The socket, which nobody but HOME's owner may open. Whoever holds HOME's lock may replace one that a crash left."""
    path = home / SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short_path(home) as address:
            listener.bind(address)
        path.chmod(0o600)  # before it listens, and so before anybody can have come in
        listener.listen(16)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def operators_door(app: ASGIApp) -> ASGIApp:
    """`app` as it is behind the socket: whoever comes in is the operator, and meets only the keys."""

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
        elif scope["path"] == "/keys" or scope["path"].startswith("/keys/"):
            await app({**scope, CALLER: OPERATOR}, receive, send)
        else:
            problem = NotFound("Only /keys is behind this socket; for everything else take a key to the server's port.")
            await problem.response(scope["path"])(scope, receive, send)

    return door


def protocol(app: ASGIApp, server: uvicorn.Server) -> Callable[[], asyncio.Protocol]:
    """Makes what speaks HTTP on a connection to the socket, as a part of `server`: it ends with it, and waits for it like the others."""
    config = uvicorn.Config(operators_door(app), log_config=None, access_log=False, server_header=False, lifespan="off")
    config.load()
    return functools.partial(
        config.http_protocol_class,  # type: ignore[call-arg]
        config=config,
        server_state=server.server_state,
        app_state=server.lifespan.state,
    )
