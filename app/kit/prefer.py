"""The `Prefer` header, RFC 7240: how long a caller would wait for an answer."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import Depends, Header, Request

from app.kit.fields import elements, name_and_value, parameters

LONGEST_WAIT_SECONDS: Final = 60


def preferences(lines: Iterable[str]) -> dict[str, str]:
    """Each preference by its lower-case name; the first of a name counts, what is malformed is passed over."""
    found: dict[str, str] = {}
    for element in (element for line in lines for element in elements(line)):
        if pair := name_and_value(parameters(element)[0]):
            found.setdefault(*pair)
    return found


def wait_seconds(lines: Iterable[str]) -> int | None:
    """N of `Prefer: wait=N`, at most a minute; None when nobody asked."""
    value = preferences(lines).get("wait", "")
    if not re.fullmatch(r"[0-9]+", value):
        return None
    digits = value.lstrip("0") or "0"
    return min(int(digits), LONGEST_WAIT_SECONDS) if len(digits) <= 2 else LONGEST_WAIT_SECONDS


def applied(wait: float) -> str:
    """The value of `Preference-Applied` for a wait that was honoured."""
    return f"wait={wait:g}"


async def _wait(
    request: Request,
    _prefer: Annotated[
        str | None,
        Header(
            alias="Prefer",
            description="`wait=N`: answer as soon as the work is done, after N seconds at the latest (at most 60).",
            examples=["wait=10"],
        ),
    ] = None,
) -> float | None:
    seconds = wait_seconds(request.headers.getlist("prefer"))
    return None if seconds is None else float(seconds)


Wait = Annotated[float | None, Depends(_wait)]
