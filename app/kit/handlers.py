"""Every error leaves as application/problem+json, and none takes a stack trace along."""

import logging
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Form
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit import problems
from app.kit.pointers import field_errors
from app.kit.problems import Problem
from app.kit.strict_json import StrictJSONResponse

log = logging.getLogger(__name__)

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

_BY_STATUS: Final[dict[int, type[Problem]]] = {
    kind.status: kind
    for kind in (
        problems.BadRequest,
        problems.NotFound,
        problems.MethodNotAllowed,
        problems.NotAcceptable,
        problems.Conflict,
        problems.PayloadTooLarge,
        problems.UnsupportedMediaType,
        problems.RangeNotSatisfiable,
        problems.InvalidInput,
        problems.TooManyRequests,
        problems.Internal,
        problems.Unavailable,
    )
}


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem document."""
    app.add_exception_handler(Problem, _answer)
    app.add_exception_handler(HTTPException, _answer)
    app.add_exception_handler(RequestValidationError, _answer)
    # Innermost of the middlewares, so that whatever they do to an answer they do to a 500 too.
    app.user_middleware.append(Middleware(UnexpectedErrors))
    # What one of them raises reaches Starlette's own last resort, which answers with this and raises again: the
    # server logs it, so this does not.
    app.add_exception_handler(Exception, _last_resort)


class UnexpectedErrors:
    """Answers 500 for what nobody foresaw, and logs it once, with the request's id."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            log.info("%s %r: the client went away", scope["method"], scope["path"])
        except Exception:
            log.exception("%s %r failed, request %s", scope["method"], scope["path"], _request_id(scope))
            # An answer half sent cannot be taken back: leaving it unfinished makes the server drop the connection.
            if not started:
                await problems.Internal().response(scope["path"])(scope, receive, send)


def _request_id(scope: Scope) -> str | None:
    state: dict[str, Any] = scope.get("state", {})
    return state.get("request_id")


async def _answer(request: Request, error: Exception) -> Response:
    match error:
        case Problem():
            return error.response(request.scope["path"])
        case RequestValidationError():
            return invalid(error, _body_type(request)).response(request.scope["path"])
        case HTTPException(status_code=status) if status < 400:
            return Response(status_code=status, headers=error.headers)
        case HTTPException():
            return _of_http(request, error)
        case _:
            raise error


async def _last_resort(request: Request, _error: Exception) -> Response:
    response = problems.Internal().response(request.scope["path"])
    if request_id := _request_id(request.scope):
        response.headers["X-Request-ID"] = request_id
    return response


def _body_type(request: Request) -> Any:
    """What the route's body should have been; None where it takes none, or a form."""
    body = getattr(request.scope.get("route"), "body_field", None)
    return None if body is None or isinstance(body.field_info, Form) else body.field_info.annotation


def invalid(error: RequestValidationError, body_type: Any = None) -> problems.InvalidInput:
    """The problem that tells all of what pydantic found wrong with a request."""
    found = field_errors(error.errors(), error.body, body_type)
    if not found:
        return problems.InvalidInput()
    first = f"{found[0].pointer}: {found[0].detail}" if found[0].pointer else found[0].detail
    more = len(error.errors()) - 1
    return problems.InvalidInput(f"{first} (and {more} more)" if more else first, errors=found)


def _of_http(request: Request, error: HTTPException) -> Response:
    path, status, headers = request.scope["path"], error.status_code, dict(error.headers or {})
    title = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
    detail = None if error.detail == title else str(error.detail)
    if status == 405:
        headers["Allow"] = ", ".join(_allowed(request)) or headers.get("Allow", "")
        detail = f"{path} does not take {request.method}; it takes {headers['Allow'] or 'nothing that we know of'}."
    elif status == 404 and detail is None:
        detail = f"There is nothing at {path}."
    if status in _BY_STATUS:
        return _BY_STATUS[status](detail, headers=headers).response(path)
    # No page of ours explains it, and RFC 9457 has a type for that.
    document = problems.Problem(detail or title).document(quote(path)) | {
        "type": "about:blank",
        "title": title,
        "status": status,
    }
    return StrictJSONResponse(document, status, headers, media_type=problems.MEDIA_TYPE)


def _allowed(request: Request) -> list[str]:
    """The methods this path takes. One route only knows its own, and several may share a path."""
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]  # what is mounted takes anything
    return [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
