"""The logger of a Trainer that fills the table of metrics."""

from collections.abc import Mapping
from typing import Any

from workers.training.conductor_post import Post


class Logging:
    """Mixed into `Logger` of the Trainer's namespace."""

    def __init__(self, post: Post, trainer: Any) -> None:
        super().__init__()
        self._post, self._trainer = post, trainer

    name, version = "", ""

    @property
    def save_dir(self) -> str:
        return self._post.spec.folder

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None: ...

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        values = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
        epoch = values.pop("epoch", None)
        if self._post.table is None or (epoch is None and self._trainer.evaluating):
            return  # of single batches of an evaluation: their steps are others than the training's
        if step is None:
            step = max(self._post.steps - 1, 0)
        self._post.table.note(step, None if epoch is None else int(epoch), values)
