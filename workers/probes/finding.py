"""What a check found, and how checks that need a child of a nursery run one."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from workers.contract import Probe
from workers.nursery_client import Nursery, PieceKilled

Evidence = Literal["absent", "importable", "configured", "simulated", "executed"]
Finding = tuple[Evidence, str]
CHILD_SECONDS = 120.0
"""A driver in trouble may never answer."""


class NoAnswer(Exception):
    """A check took too long and was ended."""

    def __str__(self) -> str:
        return f"no answer within {CHILD_SECONDS:.0f} seconds"


def probed(name: str, check: Callable[[], Finding]) -> Probe:
    """Run one check, timed; one that raises has proved nothing, and its reason is kept."""
    started = time.perf_counter()
    try:
        evidence, detail = check()
    except Exception as fault:
        evidence, detail = "absent", f"{type(fault).__name__}: {fault}"
    return Probe(
        name=name,
        evidence=evidence,
        detail=detail,
        seconds=round(time.perf_counter() - started, 4),
        at=datetime.now(UTC),
    )


def in_child(nursery: Nursery, call: str, *arguments: Any, fresh: Mapping[str, str] | None = None) -> Any:
    """Run `call(*arguments, reporter)` where jobs run: in a fork of the nursery, or with `fresh` in a new interpreter."""
    piece = nursery.fork(call, list(arguments), fresh=fresh)
    limit = threading.Timer(CHILD_SECONDS, piece.kill)
    limit.daemon = True
    limit.start()
    try:
        return piece.follow(lambda message: None)
    except PieceKilled:
        raise NoAnswer from None
    finally:
        limit.cancel()
