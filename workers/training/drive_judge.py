"""What a training attempt's end is called, once its ranks have ended."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.contract import Task
from workers.nursery_client import NurseryGone
from workers.training import failures
from workers.training.drive_artifacts import artifacts_below
from workers.training.drive_prepared import Prepared
from workers.training.gang_end import GangEnd
from workers.training.spec import RESULT

log = logging.getLogger(__name__)


class Stopped(Exception):
    """All ranks ended because they were asked to; these files they left."""

    def __init__(self, artifacts: list[dict[str, Any]]) -> None:
        super().__init__("stopped")
        self.artifacts = artifacts


class Failed(Exception):
    """The job failed, for this reason; these files it left."""

    def __init__(self, problem: dict[str, Any], artifacts: list[dict[str, Any]]) -> None:
        super().__init__(problem.get("detail"))
        self.problem, self.artifacts = problem, artifacts


def judge(task: Task, prepared: Prepared, end: GangEnd, say: Callable[[str], None]) -> dict[str, Any]:
    """The `summary`, `provenance` and `artifacts` of a success, of which what rank 0 wrote is the only evidence: an exit code is none.

    Raises Stopped, Failed, and NurseryGone where a worker was lost; `say` is told how each rank failed.
    """
    folder = Path(task.folder)
    all_clean = bool(end.ranks) and all(rank.clean for rank in end.ranks)
    stopped = any((rank.value or {}).get("end") == "stopped" for rank in end.ranks)
    if all_clean and not stopped and not end.lost and has_evidence(folder):
        return success(task, prepared, end)
    if end.asked or (stopped and all_clean):
        raise Stopped(artifacts_below(folder, end.artifacts))
    for rank in end.ranks:
        if not rank.clean:
            say(f"Rank {rank.rank} {rank.words}"[:2000])
    if end.lost and not failures.causes(end.ranks):
        raise NurseryGone(end.lost)
    strategy = str(task.plan["resolved"]["strategy"])
    raise Failed(failures.problem_of(end.ranks, end.problem, strategy), artifacts_below(folder, end.artifacts))


def has_evidence(folder: Path) -> bool:
    try:
        return isinstance(json.loads((folder / RESULT).read_bytes()), dict)
    except (OSError, ValueError) as fault:
        log.info("the attempt in %s has no result: %s", folder, fault)
        return False


def success(task: Task, prepared: Prepared, end: GangEnd) -> dict[str, Any]:
    assert task.training is not None
    value = next((rank.value for rank in end.ranks if rank.rank == 0), None) or {}
    about = {
        "nodes": [node.model_dump(mode="json", exclude={"address"}) for node in task.training.nodes],
        "started_from": "/".join(Path(prepared.checkpoint).parts[-2:]) if prepared.checkpoint else None,
    }
    return {
        "summary": value.get("summary", {}),
        "provenance": {**value.get("provenance", {}), **about},
        "artifacts": artifacts_below(Path(task.folder), end.artifacts),
    }
