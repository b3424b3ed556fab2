"""From what pydantic says about a value to a JSON Pointer and a sentence for people."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from app.kit.problems import FieldError
from app.kit.sentences import sentence

MOST_ERRORS: Final = 100
LONGEST_SENTENCE: Final = 1000

_Step: TypeAlias = str | int
_Walk: TypeAlias = tuple[bool, list[_Step]]


def pointer(*steps: _Step) -> str:
    """The RFC 6901 pointer of these steps: `pointer("a/b", 0)` → `/a~1b/0`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def field_errors(errors: Sequence[Mapping[str, Any]], body: object, body_type: Any = None) -> list[FieldError]:
    """Each error once, at most a hundred. `body_type` is what the body should have been.

    A body error points into the body. A parameter has no place there: it is `/query/limit`, `/path/id`,
    `/header/prefer` or `/cookie/name`.
    """
    found: dict[FieldError, None] = {}
    for error in errors:
        found.setdefault(FieldError(_place(error, body), _shorter(_sentence(error, body, body_type))))
        if len(found) == MOST_ERRORS:
            break
    return list(found)


def _place(error: Mapping[str, Any], body: object) -> str:
    source, *location = error.get("loc") or ("body",)
    if source != "body":
        return pointer(source, *location[:1])
    if error.get("type") == "json_invalid":
        return ""
    missing = str(error.get("type")).startswith("missing")
    reached, path = _walk(location, body, missing, {})
    return pointer(*path, *(location[-1:] if missing and not reached else ()), *_discriminator(error))


def _walk(location: Sequence[_Step], value: object, missing: bool, seen: dict[tuple[int, int], _Walk]) -> _Walk:
    """Those steps of `location` which exist in `value`, and whether the last is among them.

    Pydantic mixes in the names of union branches and validators. A name can be both a branch and a key, so every way
    to walk is tried, and the best one reaches the end and finds most steps. A `missing` last step is found where it
    could be.
    """
    if not location:
        return False, []
    memo = (len(location), id(value))
    if memo not in seen:
        step, *rest = location
        best = _walk(rest, value, missing, seen)
        if _has(value, step):
            reached, path = _walk(rest, value[step], missing, seen)  # type: ignore[index]
            best = max(best, (reached or (not rest and not missing), [step, *path]), key=_rank)
        elif missing and not rest and isinstance(value, Mapping):
            best = True, [step]
        seen[memo] = best
    return seen[memo]


def _rank(walk: _Walk) -> tuple[bool, int]:
    return walk[0], len(walk[1])


def _has(value: object, step: _Step) -> bool:
    if isinstance(step, int):
        return isinstance(value, list | tuple) and 0 <= step < len(value)
    return isinstance(value, Mapping) and step in value


def _discriminator(error: Mapping[str, Any]) -> list[_Step]:
    """The member that should have told the branches of a union apart, where that is what is wrong."""
    if error.get("type") not in ("union_tag_invalid", "union_tag_not_found"):
        return []
    name = re.fullmatch(r"'([^']+)'", str((error.get("ctx") or {}).get("discriminator")))
    return [name[1]] if name else []


def _sentence(error: Mapping[str, Any], body: object, body_type: Any) -> str:
    kind, message = str(error.get("type")), str(error.get("msg", "Invalid"))
    if kind == "json_invalid":
        offset = error["loc"][1] if len(error.get("loc", ())) > 1 else 0
        before = body[:offset] if isinstance(body, str) else ""
        reason = (error.get("ctx") or {}).get("error", message)
        line, column = before.count("\n") + 1, offset - before.rfind("\n")
        return f"Not JSON: {reason} at line {line}, column {column}"
    if kind in ("value_error", "assertion_error"):
        return re.sub(r"^(Value error|Assertion failed), ", "", message)
    value, source = error.get("input"), (error.get("loc") or ("body",))[0]
    said = sentence(error, body_type if source == "body" else None)
    told = kind.startswith(("missing", "extra_forbidden", "union_tag")) or source in ("header", "cookie")
    if told or not isinstance(value, str | int | float | bool):
        return said
    return f"{said}, not {_shown(value)}"


def _shorter(text: str) -> str:
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def _shown(value: str | int | float) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:  # an integer with more digits than Python will print
        return "so large a number"
    return text if len(text) <= 60 else text[:57] + "…"
