"""JSON bodies read strictly: no NaN, and no object so large that telling all its faults would hold everybody up."""

import json
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from app.kit.pointers import MOST_ERRORS, pointer
from app.kit.problems import FieldError, InvalidInput, Problem

MOST_MEMBERS: Final = 1000
"""Of one object. Each unknown member becomes an error, and a million errors take a minute to collect."""


class _Constant(str):
    """`NaN`, `Infinity` or `-Infinity`, which Python reads and JSON does not have."""

    advice = 'is not JSON; send null for NaN, or "inf" and "-inf" as words'


class _Beyond(_Constant):
    """A number that Python would read as infinite."""

    advice = 'is more than a 64-bit number holds, which ends at about 1.8e308; send "inf" or "-inf" if that is meant'


def loads(body: bytes) -> Any:
    """The value of `body`. Raises json.JSONDecodeError, UnicodeDecodeError, or InvalidInput."""
    constants: set[str] = set()

    def constant(text: str) -> _Constant:
        constants.add(text)
        return _Constant(text)

    def number(text: str) -> float | _Beyond:
        value = float(text)
        if value - value == 0:
            return value
        constants.add(text)
        return _Beyond(text)

    value = json.loads(body, parse_constant=constant, parse_float=number, object_pairs_hook=_object)
    if constants:
        errors = list(islice(_refusals(value, ()), MOST_ERRORS))
        raise InvalidInput(errors[0].detail, errors=errors)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_MEMBERS:
        raise InvalidInput(
            f"An object of the body has {len(pairs)} members; {MOST_MEMBERS} are the most taken.", pointer=""
        )
    return dict(pairs)


def _refusals(value: Any, path: tuple[str | int, ...]) -> Iterator[FieldError]:
    """Where the constants stand."""
    match value:
        case _Constant():
            yield FieldError(pointer(*path), f"{value} {value.advice}")
        case dict():
            for name, member in value.items():
                yield from _refusals(member, (*path, name))
        case list():
            for index, item in enumerate(value):
                yield from _refusals(item, (*path, index))


class _StrictRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = loads(await self.body())
        return self._json


class StrictJSONRoute(APIRoute):
    """A route that reads its JSON body with `loads`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            try:
                return await handle(_StrictRequest(request.scope, request.receive))
            except HTTPException as error:  # which is what FastAPI makes of whatever the parser raises
                if isinstance(error.__cause__, Problem):
                    raise error.__cause__ from None
                raise

        return strictly
