"""A callback that comes after all others, and so saves what they all have come to; it also stops."""

from pathlib import Path
from typing import Any

from workers.training.checkpoints import WRITING, size_of, take_place
from workers.training.conductor import any_rank
from workers.training.conductor_post import Post
from workers.training.spec import LAST
from workers.training.uneven import knows_of_more


class Saving:
    """Mixed into `Checkpoint` of the Trainer's namespace, which are the callbacks that Lightning calls last."""

    def __init__(self, post: Post, trainer: Any, *, wanted: bool) -> None:
        self._post, self._trainer, self._saved = post, trainer, -1
        if wanted:
            post.conductor.save = self._save

    @property
    def state_key(self) -> str:
        return "tidemill-saving"

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loop, post = trainer.fit_loop.epoch_loop, self._post
        if loop._num_ready_batches_reached():
            post.ends.ended()
        elif post.ends.uncertain and not loop._is_training_done and knows_of_more(trainer):
            # What comes next may be a collective that a rank at its end does not join.
            post.ends.batch(trainer.current_epoch, batch_idx + 2)
        # A checkpoint between gradients that are still added up would lose them. One after an epoch's last batch would have the
        # validation left out when it is gone on from; that batch has `on_train_epoch_end` coming.
        if not post.accumulates and not loop._is_training_done:
            post.conductor.step()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
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
            post.table.note(post.steps - 1, self._trainer.current_epoch, values)
            post.table.flush()
