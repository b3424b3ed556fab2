"""Values of the border, and its scalars as people send them."""

import json
import math
import reprlib
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema


class Message(BaseModel):
    """A value of the border: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a whole number, not {_as_sent(value)}")
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"must be a whole number, not {_as_sent(value)}")
        return int(value)
    return value


def _as_sent(value: object) -> str:
    """A value in JSON's own words, shortened."""
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


WholeNumber = Annotated[int, BeforeValidator(_whole), Field(strict=True)]
"""A JSON number without a fraction: 50 and 50.0, never "50", true or 50.5."""


def _sample(value: object) -> float:
    match value:
        case None:
            return math.nan
        case "inf":
            return math.inf
        case "-inf":
            return -math.inf
        case bool():
            raise ValueError(f'must be a number, null, "inf" or "-inf", not {value!r}')
        case int() | float():
            try:
                return float(value)
            except OverflowError:
                raise ValueError("must be a number that a double can hold, which ends at about 1.8e308") from None
    raise ValueError(f'must be a number, null, "inf" or "-inf", not {reprlib.repr(value)}')


def _sample_as_json(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "inf" if value > 0 else "-inf"


Sample = Annotated[
    float,
    BeforeValidator(_sample),
    PlainSerializer(_sample_as_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}, {"enum": ["inf", "-inf"]}]}),
]
"""One value of a series: `null` is NaN, and "inf" and "-inf" are what they say."""


def plain_text(value: str) -> str:
    """Refuse what no database or file name can hold: NUL and lone surrogates."""
    if "\x00" in value or any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise ValueError("must not contain NUL or unpaired surrogate characters")
    return value


Text = Annotated[str, AfterValidator(plain_text)]
