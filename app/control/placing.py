"""Which worker gets the next job. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    worker_id: str
    threads: int
    free: dict[str, int]


@dataclass(frozen=True)
class Choice:
    worker_id: str
    needs: dict[str, int]


def choose(candidates: Sequence[Candidate]) -> Choice | None:
    """A whole-call job takes all computing threads of one worker: the fastest that is free. None where all are taken."""
    room = [c for c in candidates if c.free.get("CPU", 0) >= c.threads]
    if not room:
        return None
    best = max(room, key=lambda c: (c.threads, c.free.get("CPU", 0)))
    return Choice(best.worker_id, {"CPU": best.threads})


def verdict(candidate: Candidate) -> str:
    """One clause on why this worker can or cannot take a job now."""
    free = candidate.free.get("CPU", 0)
    if free >= candidate.threads:
        return f"has room: all {candidate.threads} computing threads are free"
    return f"is taken: {free} of {candidate.threads} computing threads are free, and a job needs them all"
