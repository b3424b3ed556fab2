"""A task as its worker can run it: with what it reads here, and paths of this machine."""

from collections.abc import Callable
from typing import Any, Final

from workers.contract import Source, TableSource, Task
from workers.storage.base import Desk
from workers.training.drive_fetch import fetched_training

CHECKPOINTS: Final = "*.checkpoint"
"""What earlier attempts of a matrix profile kept."""

Relay = Callable[[dict[str, Any]], None]


def fetched(task: Task, desk: Desk, relay: Relay) -> Task:
    """The same task. Raises InvalidInput where the server no longer has something, StorageLost, Interrupted."""
    if desk.shared:
        return task
    relay({"type": "phase", "data": {"phase": "fetching"}})
    training = None
    if task.training:
        training = fetched_training(task.training, desk)
        told = {each: _table(table, desk) for each, table in training.tables.items()}
        training = training.model_copy(update={"tables": told})
    here = task.model_copy(
        update={
            "sources": {name: [_source(each, desk) for each in several] for name, several in task.sources.items()},
            "folder": desk.here(task.folder),
            "earlier": [desk.folder(each, CHECKPOINTS) for each in task.earlier],
            "training": training,
        }
    )
    relay({"type": "log", "data": {"message": desk.words}})
    return here


def _source(source: Source, desk: Desk) -> Source:
    return source.model_copy(update={"path": _file(source.path, desk), "time_path": _file(source.time_path, desk)})


def _table(table: TableSource, desk: Desk) -> TableSource:
    return table.model_copy(
        update={
            "content": desk.file(table.content),
            "columns": {name: desk.file(path) for name, path in table.columns.items()},
            "time_path": _file(table.time_path, desk),
        }
    )


def _file(path: str | None, desk: Desk) -> str | None:
    return None if path is None else desk.file(path)
