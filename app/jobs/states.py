"""The job's state machine: a table one can read aloud, and no I/O.

Every change of a job's state goes through `step`. Final means final: nothing leaves a final state, and what arrives late is
refused, by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


QUEUED, RUNNING, CANCELLING = State.QUEUED, State.RUNNING, State.CANCELLING
SUCCEEDED, FAILED, CANCELLED = State.SUCCEEDED, State.FAILED, State.CANCELLED
FINAL: Final = frozenset({SUCCEEDED, FAILED, CANCELLED})


class Event(StrEnum):
    DISPATCHED = "Dispatched"
    CANCEL_REQUESTED = "CancelRequested"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STOPPED = "Stopped"
    WORKER_LOST = "WorkerLost"
    SERVER_STOPPED = "ServerStopped"
    TIMED_OUT = "TimedOut"


@dataclass(frozen=True)
class Facts:
    """What a rule may look at beside the state."""

    attempts_counted: int
    """Attempts that ended by a fault of their own; those ended by the server's stop or crash are not among them."""
    max_attempts: int


def attempts_remain(facts: Facts) -> bool:
    return facts.attempts_counted < facts.max_attempts


def attempts_used_up(facts: Facts) -> bool:
    return not attempts_remain(facts)


@dataclass(frozen=True)
class Rule:
    source: frozenset[State]
    event: Event
    target: State
    when: Callable[[Facts], bool] | None = None


def rule(source: set[State], event: Event, target: State, when: Callable[[Facts], bool] | None = None) -> Rule:
    return Rule(frozenset(source), event, target, when)


RULES: Final = (
    rule({QUEUED}, Event.DISPATCHED, RUNNING),
    rule({QUEUED}, Event.CANCEL_REQUESTED, CANCELLED),
    rule({QUEUED, RUNNING}, Event.TIMED_OUT, FAILED),
    rule({RUNNING}, Event.SUCCEEDED, SUCCEEDED),
    rule({RUNNING}, Event.FAILED, FAILED),
    rule({RUNNING}, Event.WORKER_LOST, QUEUED, when=attempts_remain),
    rule({RUNNING}, Event.WORKER_LOST, FAILED, when=attempts_used_up),
    # A stop that nobody asked for: the worker was told to leave. The job goes on elsewhere.
    rule({RUNNING}, Event.STOPPED, QUEUED),
    rule({RUNNING}, Event.SERVER_STOPPED, QUEUED),
    rule({RUNNING}, Event.CANCEL_REQUESTED, CANCELLING),
    rule({CANCELLING}, Event.CANCEL_REQUESTED, CANCELLING),
    # However the attempt ends once a cancel was asked for, a finished result included, the job is cancelled.
    rule({CANCELLING}, Event.STOPPED, CANCELLED),
    rule({CANCELLING}, Event.SUCCEEDED, CANCELLED),
    rule({CANCELLING}, Event.FAILED, CANCELLED),
    rule({CANCELLING}, Event.WORKER_LOST, CANCELLED),
    rule({CANCELLING}, Event.SERVER_STOPPED, CANCELLED),
    rule({CANCELLING}, Event.TIMED_OUT, CANCELLED),
)


@dataclass(frozen=True)
class Refusal:
    """The event does not apply in this state; nothing changes."""

    state: State
    event: Event

    def __str__(self) -> str:
        return f"a {self.state} job takes no {self.event}"


def step(state: State, event: Event, facts: Facts) -> State | Refusal:
    """The state after `event`, or a refusal. Pure: the same arguments give the same answer."""
    for candidate in RULES:
        if state in candidate.source and candidate.event is event and (candidate.when is None or candidate.when(facts)):
            return candidate.target
    return Refusal(state, event)


def diagram() -> str:
    """The table as a Mermaid state diagram, for the README."""
    lines = ["stateDiagram-v2", f"    [*] --> {QUEUED}"]
    for r in RULES:
        condition = f" [{r.when.__name__.replace('_', ' ')}]" if r.when else ""
        lines += [f"    {source} --> {r.target}: {r.event}{condition}" for source in sorted(r.source)]
    lines += [f"    {state} --> [*]" for state in sorted(FINAL)]
    return "\n".join(lines)
