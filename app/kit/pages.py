"""Lists in pages: a cursor remembers where the last page ended and under which filters."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, NamedTuple, NoReturn, Self, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, Field

from app.kit.problems import CursorInvalid

T = TypeVar("T")
Row = TypeVar("Row")
Scalar: TypeAlias = str | int | float | None
SortKey: TypeAlias = tuple[Scalar, ...]

MOST_ITEMS: Final = 200
LONGEST_CURSOR: Final = 2000


async def _limit(
    limit: Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items a page may hold.")] = 50,
) -> int:
    return limit


async def _cursor(
    cursor: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> str | None:
    return cursor


Limit = Annotated[int, Depends(_limit)]
CursorText = Annotated[str | None, Depends(_cursor)]


class Page(BaseModel, Generic[T]):
    """A part of a list, and the way to the part after it."""

    items: list[T]
    next: str | None = Field(description="The cursor of the next page; null on the last.")


class Slice(NamedTuple, Generic[Row]):
    """The rows of one page, before they are dressed for the caller."""

    rows: list[Row]
    next: str | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: the sort key of its last row."""

    key: SortKey

    def encode(self, filters: Mapping[str, object] | None = None) -> str:
        """Opaque text for the caller to hand back, bound to `filters`. A filter that is None counts as not there."""
        content = json.dumps([_digest(filters), *self.key], separators=(",", ":"), allow_nan=False)
        return base64.urlsafe_b64encode(content.encode("ascii")).decode("ascii").rstrip("=")

    @classmethod
    def decode(
        cls, text: str, filters: Mapping[str, object] | None = None, types: Sequence[type] | None = None
    ) -> Self:
        """The cursor in `text`, or CursorInvalid.

        Nothing but form keeps a caller from writing their own: name the `types` of the key's parts, and what comes
        back is safe to put into a query (text has a UTF-8 form, numbers fit 64 bits).
        """
        digest, *key = _parsed(text)
        if digest != _digest(filters):
            raise CursorInvalid("This cursor belongs to a list with other filters.", pointer="/query/cursor")
        if not all(_plain(part) for part in key) or (types is not None and [type(part) for part in key] != list(types)):
            raise CursorInvalid("This cursor was not made here.", pointer="/query/cursor")
        return cls(tuple(key))


def page_of(
    rows: Sequence[Row], limit: int, key: Callable[[Row], SortKey], filters: Mapping[str, object] | None = None
) -> Slice[Row]:
    """The page that `rows` hold, when one more than `limit` was asked for: the extra one tells there is a next page."""
    shown = list(rows[:limit])
    return Slice(shown, Cursor(key(shown[-1])).encode(filters) if shown and len(rows) > limit else None)


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Set the `Link` header to this same list from `cursor` on; nothing on the last page."""
    if cursor is None:
        return
    # Latin-1 stands for bytes here, so that escapes which are not UTF-8 come through as they were.
    query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    others = [(name, value) for name, value in query if name != "cursor"]
    path = quote(request.scope["path"], errors="replace")
    target = f"{path}?{urlencode([*others, ('cursor', cursor)], encoding='latin-1')}"
    response.headers["Link"] = f'<{target}>; rel="next"'


def _parsed(text: str) -> list[Any]:
    try:
        if len(text) > LONGEST_CURSOR:
            raise ValueError("too long")
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        parts = json.loads(content, parse_constant=_refuse)
        if not isinstance(parts, list) or not parts:
            raise ValueError("not a cursor")
    except (ValueError, RecursionError):
        raise CursorInvalid("This cursor was not made here.", pointer="/query/cursor") from None
    return parts


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _plain(part: object) -> bool:
    match part:
        case bool():
            return False
        case int():
            return -(2**63) <= part < 2**63
        case float():
            return abs(part) < float("inf")
        case str():
            return not any("\ud800" <= character <= "\udfff" for character in part)
        case _:
            return part is None


def _digest(filters: Mapping[str, object] | None) -> str:
    named = {name: value for name, value in (filters or {}).items() if value is not None}
    return hashlib.sha256(json.dumps(named, sort_keys=True, default=str).encode("ascii")).hexdigest()[:16]
