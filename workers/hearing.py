"""What a child says on its pipe, line by line: only what has the form of a message, for a job's own code can write there too."""

import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

ANSWERS: Final = frozenset({"returned", "raised"})
"""A child's last word."""
LONGEST_ANSWER: Final = 64 << 20
LONGEST: Final = 1 << 20
"""Bytes of a line that is no answer: it goes on to the server, in one report with others."""
DEEPEST: Final = 50
"""Values within values. The JSON readers and writers that a message still has to pass give up somewhere beyond 100."""


def messages(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Every message until the pipe is closed; whatever else comes is passed over."""
    while line := stream.readline(LONGEST_ANSWER):
        if line.endswith(b"\n"):
            message = understood(line)
            if message is not None:
                yield message
        elif not _reaches_the_end_of_the_line(stream):
            return  # killed in the middle of a word


def _reaches_the_end_of_the_line(stream: BinaryIO) -> bool:
    while rest := stream.readline(LONGEST):
        if rest.endswith(b"\n"):
            return True
    return False


def understood(line: bytes) -> dict[str, Any] | None:
    """The message of a line, None where it has none."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None  # two processes wrote across each other's words, perhaps
    return message if _is_message(message, len(line)) and is_plain(message) else None


def _is_message(message: Any, size: int) -> bool:
    match message:
        case {"type": "returned"}:
            return "value" in message
        case {"type": "raised", "problem": {"type": str(), "title": str(), "status": int()} as problem}:
            return isinstance(problem.get("detail"), str | None)
        case {"type": str(kind), "data": dict()}:
            return kind not in ANSWERS and size <= LONGEST
    return False


def is_plain(value: Any, depth: int = DEEPEST) -> bool:
    """Whether any JSON writer takes it: numbers are finite, text has a UTF-8, and nothing is too deep."""
    match value:
        case float():
            return math.isfinite(value)
        case str():
            return value.isascii() or value == value.encode("utf-8", "ignore").decode()
        case dict():
            return depth > 0 and all(is_plain(each, depth - 1) for pair in value.items() for each in pair)
        case list():
            return depth > 0 and all(is_plain(each, depth - 1) for each in value)
    return True
