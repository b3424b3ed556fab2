"""What every request passes through: a name for it, a limit on its body, a look at what its body is."""

import contextlib
import logging
import re
import uuid
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Final

import anyio
from fastapi import FastAPI, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.own_hosts import OwnHosts
from app.kit.problems import PayloadTooLarge, Problem, UnsupportedMediaType

LONGEST_DRAIN_SECONDS: Final = 5.0

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_VISIBLE = re.compile(r"[\x21-\x7e]{1,128}")
_JSON = re.compile(r"application/(json|[^/\s;]+\+json)", re.IGNORECASE)


def install(
    app: FastAPI,
    *,
    max_body_bytes: int,
    exempt: Callable[[str], bool] = lambda _path: False,
    own_hosts: Collection[str] | None = None,
    page_hosts: Collection[str] | None = None,
    any_address: bool = False,
) -> None:
    """Name every request and limit its body, except on the paths which `exempt` answers for themselves.

    With `own_hosts`, answer only under loopback and these names; with `any_address`, under any IP address as well. Pages of
    `page_hosts`, by default the same names, may ask for changes from any port.
    """
    app.add_middleware(BodyLimit, max_body_bytes=max_body_bytes, exempt=exempt)
    if own_hosts is not None:
        app.add_middleware(OwnHosts, hosts=own_hosts, page_hosts=page_hosts, any_address=any_address)
    app.add_middleware(RequestId)  # last, so that it is outermost


class RequestId:
    """Puts `request_id`, the caller's `X-Request-ID` or a fresh one, into the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        name = given if _VISIBLE.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = name

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = name
            await send(message)

        token = request_id.set(name)
        try:
            await self.app(scope, receive, named)
        finally:
            request_id.reset(token)


class RequestIdFilter(logging.Filter):
    """Gives every log record a `request_id` to format, `-` outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get() or "-"
        return True


class BodyLimit:
    """413 for a body of more than `max_body_bytes`, as soon as its length is told or has been exceeded."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, exempt: Callable[[str], bool] = lambda _path: False) -> None:
        self.app, self.max_body_bytes, self.exempt = app, max_body_bytes, exempt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.exempt(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if _length(headers) > self.max_body_bytes:
            # Who expects a 100 has sent nothing yet, and reading on would ask for it.
            waits = headers.get("expect", "").lower() == "100-continue"
            await refuse(self._too_large(), scope, receive, send, drain=not waits)
            return
        received, started = 0, False

        def too_large() -> bool:
            return received > self.max_body_bytes

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if too_large():
                raise PayloadTooLarge
            return message

        async def unless_too_large(message: Message) -> None:
            nonlocal started
            # Whatever the application makes of the exception, the caller shall hear of the size.
            if started or not too_large():
                started = True
                await send(message)

        try:
            await self.app(scope, counted, unless_too_large)
        except Exception:
            if started or not too_large():
                raise
        if too_large() and not started:
            await refuse(self._too_large(), scope, receive, send)

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"The body is larger than the {self.max_body_bytes} bytes taken here.", headers={"Connection": "close"}
        )


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send, *, drain: bool = True) -> None:
    """Answer with `problem` a request whose body is not wanted."""
    response = problem.response(scope["path"])
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    # A connection closed on unread bytes is reset, and many clients send all before they read: the answer would
    # be lost. So it stays open for them to finish, not for ever.
    with anyio.move_on_after(LONGEST_DRAIN_SECONDS), contextlib.suppress(PayloadTooLarge):
        while drain and (await receive()).get("more_body", False):
            pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def json_only(request: Request) -> None:
    """A dependency: 415 for a body which is not JSON."""
    headers, kind = request.headers, request.headers.get("content-type", "").partition(";")[0].strip()
    has_body = _length(headers) > 0 or "transfer-encoding" in headers
    if request.method in ("POST", "PUT", "PATCH") and (kind or has_body) and not _JSON.fullmatch(kind):
        said = f"The body says it is {kind[:100]!r}" if kind else "The body has no Content-Type"
        raise UnsupportedMediaType(f"{said}; send application/json.", headers={"Accept": "application/json"})


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0
