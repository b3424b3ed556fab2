"""What was prepared for a training attempt before its ranks begin."""

from typing import Any

from workers.contract import Message, Task


class Prepared(Message):
    """What `prepare` found and made."""

    paths: dict[str, Any]
    """JSON Pointer into `params` → the file, or files, that a reference there became."""
    checkpoint: str | None = None
    resumes: bool = False
    resumes_in: str | None = None
    """The folder of the attempt that `checkpoint` is of."""
    metrics_before: str | None = None


def needs_preparing(task: Task) -> bool:
    """Whether there is anything to make or to look for."""
    told = task.training
    return bool(task.sources or (told and (told.tables or told.earlier or told.checkpoint)))
