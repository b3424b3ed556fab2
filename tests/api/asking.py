"""What the tests of the HTTP contract ask with, and how they read a refusal."""

import math
from typing import Any
from urllib.parse import unquote

import httpx

CSV = "text/csv"
JSON = {"content-type": "application/json"}


def wave(length: int = 60) -> list[Any]:
    """A slow wave with two like beats and one unlike them."""
    return [
        round(math.sin(i / 9) + (1.5 if i % 30 == 12 else 0) - (2.0 if i % 60 == 28 else 0), 3) for i in range(length)
    ]


def profile(values: list[Any] | None = None, window: Any = 8, **params: Any) -> dict[str, Any]:
    """A job request for a matrix profile of `values`; `params` may name another series."""
    series = {"series": {"values": wave() if values is None else values}}
    return {"kind": "matrix_profile", "params": {**series, "window": window, **params}}


def refused(answer: httpx.Response, status: int, slug: str, *pointers: str) -> dict[str, Any]:
    """The problem document that `answer` must be, with its errors at exactly these pointers."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"/problems/{slug}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert unquote(document["instance"]) == unquote(answer.request.url.path)
    assert "Traceback" not in answer.text
    if pointers:
        assert sorted({error["pointer"] for error in document["errors"]}) == sorted(pointers), document["errors"]
        assert all(error["detail"] for error in document["errors"])
    return document


def table(rows: int = 28, extra: str = "") -> bytes:
    """A CSV with a time column, a numeric one and a text one; `extra` makes it a file of its own."""
    lines = [f"2024-01-{day:02d},{math.sin(day) * 3:.3f},day {day}{extra}" for day in range(1, rows + 1)]
    return "\n".join(["date,celsius,note", *lines, ""]).encode()
