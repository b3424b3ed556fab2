"""The cursor of lists that are ordered by time and id, newest first."""

from collections.abc import Mapping
from datetime import datetime

from app.kit.clock import in_utc
from app.kit.pages import Cursor
from app.kit.problems import CursorInvalid


def time_cursor(text: str | None, filters: Mapping[str, object]) -> tuple[datetime, str] | None:
    """(time, id) of the last row seen. Raises CursorInvalid."""
    if text is None:
        return None
    at, key = Cursor.decode(text, filters, types=(str, str)).key
    try:
        return in_utc(datetime.fromisoformat(str(at))), str(key)
    except ValueError:
        raise CursorInvalid("This cursor was not made here.", pointer="/query/cursor") from None
