"""What a training attempt reads of the server's storage, where that is no folder of this machine."""

from pathlib import Path
from typing import Final

from workers.contract import TrainingTask
from workers.storage.base import Desk
from workers.training.checkpoints import fault_of
from workers.training.spec import METRICS

CHECKPOINTS: Final = "*.ckpt"


def fetched_training(told: TrainingTask, desk: Desk) -> TrainingTask:
    """The same, with paths of this machine. Of earlier attempts come the checkpoints of the one that is gone on from, the best ones among
    them, and of those that were passed over before it."""
    _fetch_newest_whole(told.earlier, desk)
    return told.model_copy(
        update={
            "checkpoint": None if told.checkpoint is None else desk.file(told.checkpoint),
            "earlier": [desk.here(each) for each in told.earlier],
            "source": None if told.source is None else desk.folder(told.source),
        }
    )


def _fetch_newest_whole(folders: list[str], desk: Desk) -> None:
    for folder in folders:
        Path(desk.here(folder)).mkdir(parents=True, exist_ok=True)
        here = [Path(desk.folder(f"{folder}/{name}")) for name in desk.newest(folder, CHECKPOINTS)]
        if any(fault_of(path) is None for path in here):
            desk.folder(folder, METRICS)
            return
