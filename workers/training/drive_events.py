"""Which messages of ranks become events of the job, and what those who read the events rely on."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Final

NUMBER: Final = int | float
FORMS: Final[Mapping[str, Mapping[str, type | UnionType]]] = {
    "phase": {"phase": str},
    "progress": {"fraction": NUMBER, "done": int, "total": int, "unit": str | None, "eta_seconds": NUMBER | None},
    "log": {"message": str},
    "metric": {"name": str, "value": NUMBER | None, "step": int},
    "artifact": {"name": str, "bytes": int},
    "warning": {"message": str},
}
"""type → the data that it always has."""


def is_event(message: Mapping[str, Any]) -> bool:
    """A job's own code can write on a rank's pipe, so the form is looked at, and not the type alone."""
    kind, data = message.get("type"), message.get("data")
    if not isinstance(kind, str) or kind not in FORMS or not isinstance(data, dict):
        return False
    return all(name in data and isinstance(data[name], form) for name, form in FORMS[kind].items())
