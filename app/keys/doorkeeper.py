"""Finds out who asks, before anything of the request is read: the first step of two, see `app.callers`."""

from collections.abc import Callable
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.callers import CALLER, LOCAL
from app.keys.service import Admitted, KeyService
from app.kit.middleware import refuse
from app.kit.problems import Problem, Unauthorized

OPEN: Final = (
    *("/", "/docs", "/redoc", "/redoc.js", "/openapi.json", "/static-offline-docs"),
    *("/health", "/problems"),
    "/internal",  # below it workers show another secret
)
"""What anybody may ask for, and whatever lies below."""
WORKERS_DOOR: Final = "/internal/"
NO_LONGER: Final = "This key is not, or no longer, one of this server's."


def is_open(path: str) -> bool:
    return path in OPEN or any(path.startswith(f"{each}/") for each in OPEN[1:])


class Doorkeeper:
    """Leaves the caller's identity in the request's scope. With `asks`, 401 for whoever shows no key, but where the door is open.

    `workers` raises a problem for whoever is not admitted at the workers' door. That has to be known here: a route's own dependencies
    are asked once its body has been parsed.
    """

    def __init__(self, app: ASGIApp, asks: bool, workers: Callable[[Request], None]) -> None:
        self.app, self.asks, self.workers = app, asks, workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or CALLER in scope:  # who came by HOME's socket is known
            await self.app(scope, receive, send)
        elif scope["path"].startswith(WORKERS_DOOR):
            await self._ask_worker(scope, receive, send)
        elif not self.asks:
            await self.app({**scope, CALLER: LOCAL}, receive, send)
        elif is_open(scope["path"]):
            await self.app(scope, receive, send)
        else:
            await self._ask(scope, receive, send)

    async def _ask_worker(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.workers(Request(scope))
        except Problem as problem:
            await refuse(problem, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys: KeyService = scope["app"].state.services.keys
        shown = shown_in(Headers(scope=scope))
        admitted = await keys.admit(shown) if shown else None
        if admitted is None:
            await refuse(Unauthorized(NO_LONGER if shown else None), scope, receive, send)
        else:
            await Visit(keys, admitted, receive, send).run(self.app, {**scope, CALLER: admitted.identity})


def shown_in(headers: Headers) -> str | None:
    """The key in `Authorization: Bearer …`; None where there is none, or more than one."""
    said = headers.getlist("authorization")
    scheme, _, key = said[0].partition(" ") if len(said) == 1 else ("", "", "")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


class Visit:
    """One request, served as long as its key is taken.

    The key is looked at again once the body has come, and before the answer to whoever only looked or waited; then it is 401. A stream
    ends with its key, as if its client had gone. What has a length is sent whole.
    """

    def __init__(self, keys: KeyService, admitted: Admitted, receive: Receive, send: Send) -> None:
        self._keys, self._admitted = keys, admitted
        self._receive, self._send = receive, send
        self._waits = self._started = self._endless = self._over = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        waited = scope["method"] == "POST" and "prefer" in Headers(scope=scope)
        self._waits = waited or scope["method"] in ("GET", "HEAD")
        try:
            await app(scope, self._receiving, self._sending)
        except Exception:
            if not self._over:
                raise
        if self._over:  # whatever the application made of that
            await refuse(Unauthorized(NO_LONGER), scope, self._receive, self._send, drain=False)

    async def _receiving(self) -> Message:
        message = await self._receive()
        whole = message["type"] == "http.request" and not message.get("more_body", False)
        if whole and not self._started and not self._keys.still_good(self._admitted):
            self._over = True
            raise Unauthorized(NO_LONGER)
        return message

    async def _sending(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._over = self._over or (self._waits and not self._keys.still_good(self._admitted))
            self._started = not self._over
            self._endless = "content-length" not in Headers(raw=message["headers"])
        elif self._started and self._endless and message.get("body") and not self._keys.still_good(self._admitted):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            raise ConnectionAbortedError("the key is no longer taken")
        if not self._over:
            await self._send(message)
