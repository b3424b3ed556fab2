"""JSON as the standard has it: never NaN, always UTF-8."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from fastapi.responses import JSONResponse
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

JSON: TypeAlias = str | int | float | bool | Sequence["JSON"] | Mapping[str, "JSON"] | None


def dumps(value: object) -> bytes:
    """UTF-8 bytes of `value`: non-finite floats become `null`; models, dataclasses and aware times are understood."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError as error:
        if "UnicodeEncodeError" not in str(error):
            raise
        # A lone surrogate has no UTF-8; JSON can still carry it as an escape.
        plain = to_jsonable_python(value, inf_nan_mode="constants")
        return json.dumps(_finite(plain), separators=(",", ":"), allow_nan=False).encode("ascii")


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if abs(value) < float("inf") else None
        case dict():
            return {name: _finite(member) for name, member in value.items()}
        case list():
            return [_finite(member) for member in value]
        case _:
            return value


class StrictJSONResponse(JSONResponse):
    """`application/json` whose non-finite numbers are `null`."""

    def render(self, content: object) -> bytes:
        return dumps(content)
