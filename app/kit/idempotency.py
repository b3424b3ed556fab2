"""Idempotency keys: what makes two requests the same, and how the first answer is given again."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Self

from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel, ConfigDict

from app.kit.problems import InvalidInput
from app.kit.strict_json import JSON

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_STRING = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_OF_THE_CONNECTION = {"connection", "content-length", "date", "server", "transfer-encoding", "x-request-id"}


def fingerprint(method: str, path: str, body: bytes | JSON) -> str:
    """A digest equal for requests that ask the same. Bytes that are JSON count as their value, whatever the key order.

    `path` may carry the query string, where the query says what to create.
    """
    content = b"json:" + _canonical(body) if not isinstance(body, bytes) else _of_bytes(body)
    head = f"{method.upper()} {path}\n".encode("utf-8", "surrogatepass")
    return hashlib.sha256(head + content).hexdigest()


def _of_bytes(body: bytes) -> bytes:
    try:
        return b"json:" + _canonical(json.loads(body))
    except (ValueError, RecursionError):
        return b"bytes:" + body


def _canonical(value: JSON) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def key_of(text: str) -> str:
    """The key in a header's value: bare, or an RFC 8941 string in quotes."""
    text = text.strip(" \t")
    key = text
    if text.startswith('"'):
        quoted = _STRING.fullmatch(text)
        key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    if not _KEY.fullmatch(key):
        raise InvalidInput(
            "An Idempotency-Key is 1 to 255 visible ASCII characters, such as a UUID.",
            pointer="/header/idempotency-key",
        )
    return key


async def _idempotency_key(
    request: Request,
    _header: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Makes a repeat safe: the same key with the same request gives the first answer again. A UUID of your own.",
            json_schema_extra={"pattern": "^[!#-~][!-~]{0,254}$"},
        ),
    ] = None,
) -> str | None:
    lines = request.headers.getlist("idempotency-key")
    return key_of(", ".join(lines)) if lines else None


IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]


class StoredAnswer(BaseModel):
    """An answer as it can be kept and given again."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    status: int
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def of(cls, response: Response) -> Self:
        """What of `response` belongs to the answer and not to the connection it left by."""
        headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_CONNECTION}
        return cls(status=response.status_code, headers=headers, body=bytes(response.body))


def replay(answer: StoredAnswer) -> Response:
    """The first answer again, saying so."""
    return Response(answer.body, answer.status, {**answer.headers, "Idempotency-Replayed": "true"})
