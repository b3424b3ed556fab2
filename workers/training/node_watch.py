"""What a node's supervisor decides by the clock: who is stuck, and when whom is sent which signal. No I/O, no clock of its own."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from workers.training.node_messages import Patience

STEPS: Final = frozenset({"beat", "progress", "metric", "artifact"})
"""Messages that a rank sends when it has got on."""
NEVER: Final = float("inf")


@dataclass
class Watch:
    """The ranks of one node, and when each last made a step."""

    start_seconds: float
    stall_seconds: float
    began: float
    steps: dict[int, float] = field(default_factory=dict)
    """rank → when it last made one."""
    stood: dict[int, int] = field(default_factory=dict)
    """rank → the number of the last step that it told of."""

    def heard(self, rank: int, kind: str, now: float, step: Any = None) -> None:
        """`step` is what a rank calls it, which a job's own code may have done."""
        if kind in STEPS:
            self.steps[rank] = now
            if isinstance(step, int):
                self.stood[rank] = step

    def due(self, rank: int) -> float:
        """When this rank is stuck, unless it makes a step before. One that never told of a step is judged by those that did:
        not every function tells of its own in all ranks."""
        if not self.steps:
            return self.began + self.start_seconds
        return self.steps.get(rank, max(self.steps.values())) + self.stall_seconds

    def stuck(self, living: Collection[int], now: float) -> list[int]:
        """The ranks that are."""
        return [rank for rank in sorted(living) if self.due(rank) <= now]

    def next_due(self, living: Collection[int]) -> float:
        return min((self.due(rank) for rank in living), default=NEVER)

    def behind(self, living: Collection[int]) -> int | None:
        """The one rank that stands at an earlier step than all others here, where there is one and it has not ended."""
        earliest = [rank for rank, step in self.stood.items() if step == min(self.stood.values())]
        return earliest[0] if len(earliest) == 1 < len(self.stood) and earliest[0] in living else None


@dataclass
class Ending:
    """The end of a node's ranks, once it was decided: first patience, then SIGTERM, then SIGKILL. Being told again only hastens it."""

    term_at: float = NEVER
    kill_at: float = NEVER
    done: Literal["nothing", "termed", "killed"] = "nothing"

    @property
    def decided(self) -> bool:
        return self.term_at < NEVER

    def hasten(self, patience: Patience, now: float) -> None:
        self.term_at = min(self.term_at, now + patience.grace_seconds)
        self.kill_at = min(self.kill_at, now + patience.grace_seconds + patience.term_seconds)

    def act(self, now: float) -> Literal["term", "kill"] | None:
        """What to do now, if anything; each is said once."""
        if now >= self.kill_at and self.done != "killed":
            self.done = "killed"
            return "kill"
        if now >= self.term_at and self.done == "nothing":
            self.done = "termed"
            return "term"
        return None

    def next_due(self) -> float:
        return {"nothing": self.term_at, "termed": self.kill_at, "killed": NEVER}[self.done]
