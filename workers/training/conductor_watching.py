"""A callback that comes before all others: sees each batch of every stage, tells how far training is, and finds what goes wrong."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.training.checkpoint_position import Position
from workers.training.checkpoint_state import relocate
from workers.training.conductor_post import Post
from workers.training.uneven import compare_lengths, may_be_uneven

STATE_KEY = "tidemill"


class Watching:
    """Mixed into `Callback` of the Trainer's namespace: `lightning.pytorch` and `pytorch_lightning` have every class twice."""

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
        if may_be_uneven(trainer):
            post.ends.uncertain = True
            post.reporter.each_second = post.ends.publish
        if spec.resumes and spec.metrics_before and post.table:
            post.table.adopt(Path(spec.metrics_before), post.steps)
        if (done := self._position.restore(trainer)) and spec.rank == 0:
            told = f"Goes on in epoch {trainer.current_epoch} after {done} of its batches; its means are of those that follow."
            print(told)  # noqa: T201 - into the job's log
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
        if trainer.state.fn != "fit":
            pace.step = pace.done = pace.done + 1
        elif not trainer.sanity_checking:
            pace.stage = "validate"
        self._post.evaluation.step()

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self._evaluation_batch(trainer)

    on_test_batch_end = on_validation_batch_end

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._post.ends.ended()  # of a loader that has fewer batches than it says, only now
        self._post.losses.check()

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self._post.losses.check()  # before anything is saved because of this validation
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
