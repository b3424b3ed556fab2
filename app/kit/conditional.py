"""Conditional requests, RFC 9110 section 13: answer only what changed."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Header, Request, Response

_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')


async def _if_none_match(
    _header: Annotated[
        str | None, Header(alias="If-None-Match", description="The `ETag` you have; 304 if it is still the version.")
    ] = None,
) -> None:
    """Only says in the schema what `not_modified` looks at."""


IfNoneMatch = Depends(_if_none_match)


def etag(version: str | int) -> str:
    """The strong entity tag of a version, quotes included."""
    text = str(version)
    if not re.fullmatch(r"[\x21\x23-\x7e]{1,200}", text):
        text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f'"{text}"'


def not_modified(request: Request, tag: str, headers: Mapping[str, str] | None = None) -> Response | None:
    """The 304 to send when `If-None-Match` names `tag`, compared weakly; None when the whole answer is due."""
    field = _field(request, "if-none-match")
    if field is None or not (field == "*" or _opaque(tag) in {text for _, text in _TAG.findall(field)}):
        return None
    return Response(status_code=304, headers={**(headers or {}), "ETag": tag})


def _field(request: Request, name: str) -> str | None:
    lines = request.headers.getlist(name)
    return ", ".join(lines).strip() if lines else None


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/")
