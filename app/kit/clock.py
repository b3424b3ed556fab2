"""Times: always aware, always UTC, always RFC 3339."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def now() -> datetime:
    """This moment, UTC."""
    return datetime.now(UTC)


def rfc3339(time: datetime) -> str:
    """`2026-01-31T12:00:00.000000Z`: always UTC, always microseconds, so that text sorts as time does."""
    if time.utcoffset() is None:
        raise ValueError("a time without an offset names no moment")
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _says_its_offset(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and _RFC3339.fullmatch(value)):
        return value
    raise ValueError("A time is RFC 3339 with an offset, such as 2026-01-31T12:00:00Z")


def in_utc(time: datetime) -> datetime:
    """The same moment in UTC. Raises ValueError where there is none."""
    if time.utcoffset() is None:
        raise ValueError("A time needs an offset, such as the Z of 2026-01-31T12:00:00Z")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("A time must lie between the years 1 and 9999 in UTC") from None


Rfc3339 = Annotated[
    datetime,
    BeforeValidator(_says_its_offset),
    AfterValidator(in_utc),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-31T12:00:00.000000Z"]}),
]
