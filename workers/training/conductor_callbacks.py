"""Our part in a Trainer: a callback before all others that watches and tells, one after all others that saves and stops, and a logger.

Made for the namespace of the model's Trainer: `lightning.pytorch` and `pytorch_lightning` have every class twice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.training.checkpoint_position import Position
from workers.training.checkpoint_state import relocate
from workers.training.checkpoints import WRITING, size_of, take_place
from workers.training.conductor import Conductor, EvaluationStop, any_rank
from workers.training.losses import LossWatch
from workers.training.metrics import MetricsTable
from workers.training.predictions import Predictions
from workers.training.reporting import RankReporter
from workers.training.spec import LAST, RankSpec
from workers.training.uneven import EpochEnds, compare_lengths

STATE_KEY = "tidemill"


@dataclass
class Post:
    """What the callbacks of one rank share."""

    spec: RankSpec
    reporter: RankReporter
    table: MetricsTable | None
    """Of rank 0."""
    losses: LossWatch
    ends: EpochEnds
    conductor: Conductor
    predictions: Predictions | None = None
    """Of a job that predicts."""
    evaluation: EvaluationStop = field(init=False)
    accumulates: bool = False
    """Whether the newest batch's gradients wait for those of the next ones."""
    steps: int = 0
    """Whose metrics are complete once what is due is logged: rows of less than this are a checkpoint's."""

    def __post_init__(self) -> None:
        self.evaluation = EvaluationStop(self.conductor, self.spec.rank)


class Watching:
    """Comes first: sees each batch of every stage."""

    def __init__(self, post: Post) -> None:
        self._post, self._pace = post, post.reporter.pace
        self._position = Position(post.spec.world_size)

    @property
    def state_key(self) -> str:
        return STATE_KEY

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self._post.steps, "folder": self._post.spec.folder, "position": self._position.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._post.steps = state["steps"]
        self._position.load(state["position"])

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        self._post.steps = checkpoint.get("global_step", 0)  # of one that was not made here; ours says it itself
        relocate(self._post.spec, trainer, checkpoint, STATE_KEY)

    def on_sanity_check_start(self, trainer: Any, module: Any) -> None:
        self._pace.stage = "sanity_check"

    def on_train_start(self, trainer: Any, module: Any) -> None:
        compare_lengths(trainer.num_training_batches)
        spec, post = self._post.spec, self._post
        if trainer.num_training_batches == math.inf:
            post.reporter.each_second = post.ends.publish
        if spec.resumes and spec.metrics_before and post.table:
            post.table.adopt(Path(spec.metrics_before), post.steps)
        self._position.restore(trainer)
        self._pace.step, self._pace.epoch = post.steps, trainer.current_epoch
        self._pace.begin("fit", steps_of(trainer), post.steps)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self._position.epoch_begins()

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self._post.ends.batch(trainer.current_epoch, batch_idx + 1)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loop, post, pace = trainer.fit_loop.epoch_loop, self._post, self._pace
        epoch = trainer.current_epoch
        post.accumulates = loop._should_accumulate()
        steps = loop._batches_that_stepped + (not post.accumulates)
        pace.stage, pace.epoch, pace.step, pace.done = "fit", epoch, steps, steps
        pace.beats += 1
        if isinstance(outputs, Mapping):
            post.losses.add(loop._batches_that_stepped, epoch, outputs.get("loss"))
        post.steps = steps

    def _evaluation_batch(self, trainer: Any) -> None:
        pace = self._pace
        pace.beats += 1
        if trainer.sanity_checking:
            return
        if trainer.state.fn == "fit":
            pace.stage = "validate"
        else:
            pace.step = pace.done = pace.done + 1
        self._post.evaluation.step()

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self._evaluation_batch(trainer)

    on_test_batch_end = on_validation_batch_end

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if trainer.state.fn == "validate":
            self._pace.begin("validate", sum(trainer.num_val_batches))

    def on_test_start(self, trainer: Any, module: Any) -> None:
        self._pace.begin("test", sum(trainer.num_test_batches))

    def on_predict_start(self, trainer: Any, module: Any) -> None:
        self._pace.begin("predict", sum(trainer.num_predict_batches))

    def on_predict_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self._post.predictions:
            self._post.predictions.add(trainer, outputs, batch_idx, dataloader_idx)
        self._evaluation_batch(trainer)


def steps_of(trainer: Any) -> float:
    """How many steps a fit will make; infinite where Lightning cannot tell."""
    try:
        return float(trainer.estimated_stepping_batches)
    except Exception as fault:  # each package has a MisconfigurationException of its own
        if type(fault).__name__ != "MisconfigurationException":
            raise
        return math.inf


class Saving:
    """Comes last: what it saves has the state that all other callbacks have after this step."""

    def __init__(self, post: Post, trainer: Any, *, wanted: bool) -> None:
        self._post, self._trainer, self._saved = post, trainer, -1
        if wanted:
            post.conductor.save = self._save

    @property
    def state_key(self) -> str:
        return f"{STATE_KEY}-saving"

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loop, post = trainer.fit_loop.epoch_loop, self._post
        if loop._num_ready_batches_reached():
            post.ends.ended(wait=trainer.num_training_batches == math.inf)
        # A checkpoint between gradients that are still added up would lose them. One after an epoch's last batch would have the
        # validation left out when it is gone on from; that batch has `on_train_epoch_end` coming.
        if not post.accumulates and not loop._is_training_done:
            post.conductor.step()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._post.losses.check()
        self._post.conductor.epoch_ended()

    def on_train_end(self, trainer: Any, module: Any) -> None:
        if self._saved != self._post.steps:
            self._post.conductor.finished()

    def _save(self, last: bool) -> None:
        post, trainer = self._post, self._trainer
        post.losses.check()
        # A rank whose loss is not finite has ended before this; then the others end here, and the good checkpoint stays.
        any_rank(False)
        self._note_what_is_due()
        writing, final = Path(post.spec.folder, f"{WRITING}{LAST}"), Path(post.spec.folder, LAST)
        trainer.save_checkpoint(writing, weights_only=False)
        if post.spec.rank == 0:
            take_place(writing, final)
            post.reporter.artifact(LAST, size_of(final))
        self._saved = post.steps

    def _note_what_is_due(self) -> None:
        """Lightning logs a step's metrics after the callbacks, so those of a checkpoint's last step would be missing if it ended here."""
        connector, post = self._trainer._logger_connector, self._post
        if connector._first_loop_iter is not None and not connector.should_update_logs:
            values: dict[str, float] = {}
        else:
            values = {name: float(value) for name, value in connector.metrics["log"].items()}
        if post.table:
            epoch = values.pop("epoch", self._trainer.current_epoch)
            post.table.note(post.steps - 1, int(epoch), values)
            post.table.flush()


class Logging:
    """The logger that fills `metrics.csv` and makes the events."""

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
