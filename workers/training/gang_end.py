"""How a gang's run ended."""

from dataclasses import dataclass, field
from typing import Any

from workers.training.node_messages import RankEnd


@dataclass
class GangEnd:
    """How all ranks ended, and what else there was."""

    ranks: list[RankEnd] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    """What other nodes left with the server, out of this one's sight."""
    asked: bool = False
    """They were asked to stop, before anything had failed."""
    problem: dict[str, Any] | None = None
    """What was found before any rank said so: ranks that made no step, a meeting point that was lost. `at` says when."""
    lost: str | None = None
    """Why it could not go on, where that is no fault of the job's."""
