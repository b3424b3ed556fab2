"""JSON Pointers (RFC 6901), made and followed."""

from typing import Any, Final

CONFIG: Final = "/params/config"
"""Where a training job's configuration lies in a request."""


def joined(base: str, *keys: str | int) -> str:
    """`base` and the escaped `keys` below it."""
    return base + "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def keys_of(pointer: str) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


def with_value(document: Any, keys: list[str], value: Any) -> Any:
    """A copy of `document` with `value` at `keys`; what does not change is shared."""
    if not keys:
        return value
    first, *rest = keys
    if isinstance(document, list):
        index = int(first)
        return [with_value(each, rest, value) if i == index else each for i, each in enumerate(document)]
    return {**document, first: with_value(document[first], rest, value)}
