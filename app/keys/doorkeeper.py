"""Finds out who asks, before anything of the request is read: the first step of two, see `app.callers`."""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.callers import CALLER, LOCAL
from app.keys.service import Admitted, KeyService
from app.kit.middleware import refuse
from app.kit.problems import Unauthorized

OPEN: Final = (
    *("/", "/docs", "/redoc", "/redoc.js", "/openapi.json", "/static-offline-docs"),
    *("/health", "/problems"),
    "/internal",  # workers show another secret there, see `app.control.admission`
)
"""What anybody may ask for, and whatever lies below."""


def is_open(path: str) -> bool:
    return path in OPEN or any(path.startswith(f"{each}/") for each in OPEN[1:])


class Doorkeeper:
    """Leaves the caller's identity in the request's scope. With `asks`, 401 for whoever shows no key, but where the door is open."""

    def __init__(self, app: ASGIApp, asks: bool) -> None:
        self.app, self.asks = app, asks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or CALLER in scope:  # who came by HOME's socket is known
            await self.app(scope, receive, send)
        elif not self.asks:
            await self.app({**scope, CALLER: LOCAL}, receive, send)
        elif is_open(scope["path"]):
            await self.app(scope, receive, send)
        else:
            await self._ask(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys: KeyService = scope["app"].state.services.keys
        shown = shown_in(Headers(scope=scope))
        admitted = await keys.admit(shown) if shown else None
        if admitted is None:
            detail = None if shown is None else "This key is not, or no longer, one of this server's."
            await refuse(Unauthorized(detail), scope, receive, send)
        else:
            await self.app({**scope, CALLER: admitted.identity}, receive, while_good(keys, admitted, send))


def shown_in(headers: Headers) -> str | None:
    """The key in `Authorization: Bearer …`; None where there is none, or more than one."""
    said = headers.getlist("authorization")
    scheme, _, key = said[0].partition(" ") if len(said) == 1 else ("", "", "")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def while_good(keys: KeyService, admitted: Admitted, send: Send) -> Send:
    """Sends until the key is revoked or expires: then a stream ends, as if its client had gone. What has a length is sent whole."""
    endless = False

    async def sending(message: Message) -> None:
        nonlocal endless
        if message["type"] == "http.response.start":
            endless = "content-length" not in Headers(raw=message["headers"])
        elif endless and message.get("body") and not keys.still_good(admitted):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            raise ConnectionAbortedError("the key is no longer taken")
        await send(message)

    return sending
