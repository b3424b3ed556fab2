"""The logger of a Trainer that fills the table of metrics."""

from collections.abc import Mapping
from typing import Any

from workers.training.conductor_post import Post

FIXED = frozenset({"step", "epoch"})


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
        trainer, connector = self._trainer, self._trainer._logger_connector
        epoch = values.pop("epoch", None)
        of_batch = trainer.evaluating and connector._first_loop_iter is not None
        if FIXED & connector._logged_metrics.keys() and not of_batch:
            # Lightning has taken a metric that is called `step` or `epoch` for the row's own.
            step, epoch = trainer.fit_loop.epoch_loop._batches_that_stepped, trainer.current_epoch
        if self._post.table is None or of_batch or (epoch is None and trainer.evaluating):
            return  # of single batches of an evaluation: their steps are others than the training's
        if step is None:
            step = max(self._post.steps - 1, 0)
        self._post.table.note(step, None if epoch is None else int(epoch), values)
