"""The problems that any web service has. Each docstring is the page that explains it; features add their own."""

from app.kit.problem import MEDIA_TYPE as MEDIA_TYPE
from app.kit.problem import FieldError as FieldError
from app.kit.problem import Problem as Problem
from app.kit.problem import catalogue as catalogue


class BadRequest(Problem):
    """The request could not be read.

    Its syntax is broken before its meaning can be looked at: a body cut short, bytes that are not UTF-8, a malformed
    form. Send it again as the format demands.
    """

    status = 400


class Unauthorized(Problem):
    """This address takes a key, and the request has none that counts.

    Send it in the header `Authorization: Bearer <key>`. One that is unknown, has expired or was revoked counts as none; whoever runs the
    server makes another.
    """

    status = 401

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(Problem):
    """Your key is not for this. The detail names the scope that it takes; whoever runs the server makes a key that has it."""

    status = 403


class NotFound(Problem):
    """There is nothing at this address, or nothing that you may see."""

    status = 404


class MethodNotAllowed(Problem):
    """This address does not take this method. The `Allow` header lists those it takes."""

    status = 405


class NotAcceptable(Problem):
    """No representation matches your `Accept` header. The detail lists what there is."""

    status = 406


class Conflict(Problem):
    """The request does not fit the present state of what it addresses."""

    status = 409


class RequestInFlight(Problem):
    """A request with this `Idempotency-Key` is still being answered.

    Wait for as long as `Retry-After` says and send the same request again: you will get the first one's answer.
    """

    status, title, retry_after_seconds = 409, "Request still in flight", 1


class PayloadTooLarge(Problem):
    """The body is larger than the server takes here. The detail gives the limit in bytes."""

    status = 413


class UnsupportedMediaType(Problem):
    """The body's `Content-Type` is not one which this address understands. The detail lists those that are."""

    status = 415


class RangeNotSatisfiable(Problem):
    """The `Range` you asked for lies outside the file. `Content-Range` gives its length."""

    status = 416


class InvalidInput(Problem):
    """Something in the request has a value it cannot have.

    `errors` lists each fault: `pointer`, an RFC 6901 JSON Pointer to it, and `detail`, what is wrong there. A pointer
    leads into the body (`/items/0/name`; the empty pointer is the body as a whole), or begins with `/query`, `/path`,
    `/header` or `/cookie` and names a parameter (`/query/limit`). Mend them all and send the request again.
    """

    status = 422


class IdempotencyKeyReused(Problem):
    """This `Idempotency-Key` was used before, with another request.

    A key stands for one request. Take a fresh one for a new request, or repeat the first exactly.
    """

    status, title = 422, "Idempotency key reused"


class CursorInvalid(Problem):
    """The `cursor` is not one which this list gave out under these filters.

    Take it from `next` or the `Link` header of the page before, and keep the other query parameters as they were
    (`limit` may change). To change a filter, start again without a cursor.
    """

    status, title = 422, "Cursor invalid"


class HostNotAllowed(Problem):
    """The `Host` of the request is not one of this server's.

    It answers under `localhost`, a loopback address, its configured host, the host of its public URL and the names that its operator
    allows; where it listens beyond its own machine, also under any IP address and its machine's name. Any other name may be a web
    page's trick to reach it through your browser.
    """

    status = 421


class OriginNotAllowed(Problem):
    """A web page of another origin asked for a change.

    The server takes changes from its own pages and from programs, which send no `Origin`.
    """

    status = 403


class TooManyRequests(Problem):
    """You have sent more than your share. Wait for as long as `Retry-After` says."""

    status, retry_after_seconds = 429, 5


class Internal(Problem):
    """The fault is ours: something failed that should not have.

    The server's log tells what, under the request's `X-Request-ID`. Sending the request again may help; if it does
    not, report that id.
    """

    status, title = 500, "Internal error"


class Unavailable(Problem):
    """The service cannot do this at the moment. Try again after as long as `Retry-After` says."""

    status, retry_after_seconds = 503, 5
