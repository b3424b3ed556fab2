"""What a gang's driver and the supervisor of one node tell each other: the ranks to run, and how each ended."""

from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from workers.contract import Message, StorageFacts

RANK: Final = "workers.training.rank:run"
RESOURCES: Final = ("/proc/vmstat", "/sys/fs/cgroup/memory.events")
"""Where the kernel counts those whom it killed for want of memory."""


@dataclass(frozen=True)
class Patience:
    """How ranks are ended: so long they may end by themselves, then SIGTERM, so long again, then SIGKILL."""

    grace_seconds: float
    term_seconds: float


ASKED: Final = Patience(5.0, 2.0)
"""A stop was asked for: time to write a checkpoint."""
LEAVING: Final = Patience(2.2, 0.6)
"""This worker leaves, and is killed 5 s after it was told."""
DELIVERING_SECONDS: Final = 60.0
"""How long a node may take to put its files back once its ranks have ended, where the others are waited for no longer."""
LEAVING_SECONDS: Final = 3.2
"""With what else there is to do."""
PEER_FAILED: Final = Patience(2.5, 1.5)
"""Another rank failed; the cause may be what this one is about to say."""
STUCK: Final = Patience(0.5, 1.0)
"""Time enough to print where it is stuck."""
AT_ONCE: Final = Patience(0.0, 0.0)


class RankWork(Message):
    """One rank to be forked."""

    rank: int
    log: str
    """The file that takes what it prints."""
    spec: dict[str, Any]
    """The argument of the call."""


class NodeWork(Message):
    """The ranks of one node."""

    attempt: str
    claim: str
    node: int
    ranks: list[RankWork]
    home_shares: bool = True
    """Whether the driver's machine has the server's storage as a folder, and so sees what this node writes there."""
    storage: StorageFacts | None = None
    """As a task's."""
    inputs: dict[str, Any] = Field(default_factory=dict)
    """JSON Pointer into `params` → the file, or files, that stand there in every rank's."""
    call: str = RANK
    start_seconds: float
    """Without a first step for so long, the ranks are stuck at their start."""
    stall_seconds: float
    """Without a step for so long, they are stuck."""


class RankEnd(Message):
    """How one rank ended."""

    rank: int
    node: int
    at: float
    """When, by that machine's clock, in seconds since 1970."""
    value: dict[str, Any] | None = None
    """What it returned."""
    problem: dict[str, Any] | None = None
    """What it raised."""
    code: int | None = None
    """Its exit code, or below zero the signal that ended it; None where its nursery went with it."""
    termed: bool = False
    """It had been sent SIGTERM or SIGKILL by its supervisor before."""
    stepped: bool = False
    """It had made a step."""
    out_of_memory: bool = False
    """The kernel had killed something here for want of memory, while this rank ran."""

    @property
    def clean(self) -> bool:
        return self.value is not None

    @property
    def words(self) -> str:
        """How it ended, for a sentence: `rank 1 …`."""
        if self.value is not None:
            return f"ended in good order ({self.value.get('end', 'finished')})"
        if self.problem is not None:
            return f"failed: {self.problem.get('detail') or self.problem.get('title')}"
        if self.code is None:
            return "was lost with the process that forked it"
        return f"was ended by signal {-self.code}" if self.code < 0 else f"ended with code {self.code}, without a word"


class NodeEnd(Message):
    """How the ranks of one node ended."""

    node: int
    ranks: list[RankEnd]
    problem: dict[str, Any] | None = None
    """What its supervisor found: ranks that made no step, an address that cannot be reached. `at` says when."""
    lost: str | None = None
    """Why this node could not keep its ranks going, where that is no fault of theirs."""
    artifacts: list[dict[str, Any]] = Field(default_factory=list)
    """Files that this node left where the driver does not see them."""
    leaving: bool = False
    """Its worker was told to leave, or to stop this piece."""


def killed_for_memory() -> int:
    """How many processes the kernel has killed for want of memory, here or in this container."""
    count = 0
    for path in RESOURCES:
        try:
            with open(path, encoding="ascii") as table:
                count += sum(int(line.split()[1]) for line in table if line.startswith("oom_kill "))
        except (OSError, ValueError, IndexError):
            continue  # not told here
    return count
