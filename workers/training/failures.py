"""What a training job's failure is called: from how all its ranks ended to the one problem that says why."""

import signal
from collections.abc import Collection, Iterator
from typing import Any

from workers.failures import JobFailure, OutOfMemory
from workers.training.failures_known import ECHO, SHARDED, SIGNALS, SORTS, UNSORTED
from workers.training.failures_named import NURSERY_GONE, RankKilled, TrainingFailed, TrainingHung, TrainingStalled
from workers.training.node_messages import RankEnd
from workers.training.node_watch import Watch


def stuck(living: Collection[int], watch: Watch, now: float) -> dict[str, Any]:
    """The problem of a node's ranks of which some made no step in time. One that waits for another is as silent as the one it waits for,
    so facts are told of all, and a name only where one is behind all others."""
    logs = ", ".join(f"rank-{rank}.log" for rank in sorted(living))
    where = f"The stack of each rank stands at the end of its log ({logs})."
    if not watch.steps:
        who = "any rank here" if len(living) > 1 else f"rank {min(living)}"
        told = f"No first step of {who} within the start_seconds of {watch.start_seconds:g}. {where}"
        return TrainingHung(f"{told} Where loading takes that long, allow more start_seconds.").problem()
    ago = now - min(watch.due(rank) for rank in living) + watch.stall_seconds
    nobody = "Not all ranks here made a step" if len(living) > 1 else f"No step of rank {min(living)}"
    stood = [
        f"rank {rank} {f'stood at step {watch.stood[rank]}' if rank in watch.stood else 'told of no step'}"
        f"{'' if rank in living else ' when it ended'}"
        for rank in sorted({*living, *watch.stood})
    ]
    behind = watch.behind(living)
    suspect = "" if behind is None else f" Rank {behind} is behind all others: look there first."
    failure = TrainingStalled(
        f"{nobody} for {ago:.0f} s, longer than the stall_seconds of {watch.stall_seconds:g}. "
        f"{', '.join(stood).capitalize()}.{suspect} {where} "
        "Where a step, a validation or a save takes that long, allow more stall_seconds."
    )
    return failure.problem() if behind is None else {**failure.problem(), "rank": behind}


def problem_of(ends: Collection[RankEnd], found: dict[str, Any] | None, strategy: str) -> dict[str, Any]:
    """Why the job failed: the earliest cause among its ranks, or what a supervisor found before there was one. What ranks say of a lost
    connection is no cause where there is another."""
    if first := causes(ends, found):
        return _told(first[0], strategy)
    if found:
        return found
    failed = sorted(_failed(ends, found), key=_when)
    if not failed:
        return TrainingFailed("The ranks ended without a result. Their logs have their last words.").problem()
    finished = [end.rank for end in ends if end.clean and end.value and end.value.get("end") == "finished"]
    if finished:
        waited, left = failed[0].rank, finished[0]
        return {
            **TrainingFailed(
                f"Rank {left} had finished while rank {waited} still had steps to make, and waited for it in vain: the ranks got "
                "different numbers of batches. Give each the same number: a sampler that pads or drops the rest, or `limit_train_batches`."
            ).problem(),
            "rank": waited,
            "at": _when(failed[0]),
        }
    return _told(failed[0], strategy)


def causes(ends: Collection[RankEnd], found: dict[str, Any] | None = None) -> list[RankEnd]:
    """The ranks that failed for a reason of their own, the earliest first."""
    return sorted((end for end in _failed(ends, found) if end.code is not None and not _is_echo(end)), key=_when)


def _failed(ends: Collection[RankEnd], found: dict[str, Any] | None) -> Iterator[RankEnd]:
    """The ranks that failed by themselves: not those that were ended because another one had, or because of what was found."""
    for end in ends:
        if not end.clean and not end.termed and not (found and _when(end) >= found.get("at", 0.0)):
            yield end


def _when(end: RankEnd) -> float:
    """Its own word on when it failed counts: its words may be long in coming."""
    told = (end.problem or {}).get("at")
    return float(told) if isinstance(told, int | float) else end.at


def _is_echo(end: RankEnd) -> bool:
    told = end.problem or {}
    return bool(told.get("echo")) or ECHO.search(str(told.get("detail", ""))) is not None


def _told(end: RankEnd, strategy: str) -> dict[str, Any]:
    problem = _sorted(end) if end.problem is not None else _silent(end).problem()
    if (
        problem["type"] == f"/problems/{OutOfMemory.slug}"
        and strategy.startswith("ddp")
        and "fsdp" not in str(problem["detail"])
    ):
        problem["detail"] = f"{problem['detail']}{SHARDED}"
    problem.pop("echo", None)
    return {"at": end.at, **problem, "rank": end.rank}


def _sorted(end: RankEnd) -> dict[str, Any]:
    problem = dict(end.problem or {})
    if problem.get("type") not in UNSORTED:
        return problem  # it knew itself what it was
    detail = str(problem.get("detail", ""))
    for sort in SORTS:
        if (not end.stepped or not sort.at_start_only) and sort.words.search(detail):
            return {**problem, **sort.kind(f"{detail.rstrip('.')}. {sort.hint}").problem()}
    return problem


def _silent(end: RankEnd) -> JobFailure:
    """A rank that ended without a word."""
    if end.code is None:
        return JobFailure(NURSERY_GONE)
    if end.out_of_memory:
        return OutOfMemory(
            f"The kernel killed rank {end.rank} because memory ran out. Use a smaller batch_size or model, or a worker with more memory."
        )
    if end.code < 0:
        name = signal.Signals(-end.code).name if -end.code in set(signal.Signals) else f"signal {-end.code}"
        why = SIGNALS.get(-end.code)
        return RankKilled(f"Rank {end.rank} was ended by {name}{f': {why}' if why else ''}.")
    return TrainingFailed(
        f"Rank {end.rank} ended with code {end.code} and without a word; its last lines are in rank-{end.rank}.log."
    )
