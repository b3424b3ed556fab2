"""What a training attempt needs before its ranks begin, made in a child of the nursery: its data as files, and where it starts from."""

from pathlib import Path
from typing import Any

from workers.contract import Task, TrainingParams
from workers.reporting import Reporter
from workers.training.checkpoints import newest_whole
from workers.training.drive_prepared import Prepared
from workers.training.inputs import materialise
from workers.training.spec import METRICS


def prepare(told: dict[str, Any], reporter: Reporter) -> dict[str, Any]:
    """Called in the child; its log is the job's."""
    task = Task.model_validate(told)
    paths = materialise(task, Path(task.folder), reporter.log)
    return Prepared(paths=paths, **start_of(task, reporter)).model_dump(mode="json")


def start_of(task: Task, reporter: Reporter) -> dict[str, Any]:
    """The checkpoint to start from: the job's own newest that is whole, or the one that `ckpt_path` names. The log says which."""
    assert task.training is not None
    params = TrainingParams.model_validate(task.params)
    if task.training.earlier and (params.stage == "fit" or params.mode == "fabric"):
        newest, skipped = newest_whole(task.training.earlier)
        for path, why in skipped:
            reporter.log(f"Passed over the checkpoint {known_as(path)}: {why}.")
        if newest is not None:
            reporter.log(f"Goes on from {known_as(newest)}.")
            folder = next(each for each in task.training.earlier if newest.is_relative_to(each))
            metrics = Path(folder, METRICS)
            return {
                "checkpoint": str(newest),
                "resumes": True,
                "resumes_in": folder,
                "metrics_before": str(metrics) if metrics.is_file() else None,
            }
        reporter.log("No earlier attempt left a checkpoint to go on from; starts from the beginning.")
    if task.training.checkpoint:
        reporter.log(f"Starts from {known_as(Path(task.training.checkpoint))}, which ckpt_path names.")
    return {"checkpoint": task.training.checkpoint}


def known_as(path: Path) -> str:
    """A checkpoint as users know it: the attempt's number and the name below that."""
    return "/".join(path.parts[-2:])
