"""Column types: times that are always UTC, JSON that is always strict."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import String, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from app.kit.clock import rfc3339


class NaiveTime(ValueError):
    """A time without a zone was about to be stored; give it one (`datetime.now(UTC)`)."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, stored as fixed-width ISO text in UTC, so that text order is time order."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise NaiveTime(f"{value!r} has no time zone; times are stored in UTC, so give it one")
        return rfc3339(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class Json(TypeDecorator[Any]):
    """Any JSON value as text. NaN and Infinity are refused: what is stored must be answerable."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)
