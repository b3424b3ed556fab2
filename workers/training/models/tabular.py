"""What `Classifier` and `Regressor` have in common."""

from typing import Any, ClassVar

from torch import Tensor, nn

from workers.training.data.loader import Batch
from workers.training.models.base import Learner
from workers.training.models.nets import Beside, Perceptron


class Tabular(Learner):
    """A linear map of the features, and beside it layers that learn what is not linear."""

    FITS = "workers.training.data.Table"
    target_kind: ClassVar[str]

    def network(self) -> nn.Module:
        h = self.hparams
        beside = Perceptron(h["inputs"], h["width"], h["layers"], h["dropout"]) if h["layers"] else None
        return Beside(1, h["inputs"], self.outputs(), beside, h["width"])

    def outputs(self) -> int:
        """How many numbers the network gives for a row."""
        raise NotImplementedError

    def losses(self, said: Tensor, target: Tensor) -> Tensor:
        """(b, outputs), (b,) → (b,)."""
        raise NotImplementedError

    def measures(self, prefix: str, said: Tensor, target: Tensor, data: Any) -> dict[str, Tensor]:
        """What is logged of an evaluation beside the loss, each (b,)."""
        raise NotImplementedError

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        return self.tell_training(self.losses(self(batch["features"]), batch["target"]).mean(), batch)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("val", batch)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("test", batch)

    def _evaluate(self, prefix: str, batch: Batch) -> None:
        said = self(batch["features"]).float()
        data: Any = self.trainer.datamodule
        each = {
            f"{prefix}_loss": self.losses(said, batch["target"]),
            **self.measures(prefix, said, batch["target"], data),
        }
        self.tell(each, batch)


def checked(width: int, layers: int) -> None:
    """Refuse sizes that no network has."""
    if width < 1:
        raise ValueError(f"`width` is {width}, but must be at least 1.")
    if layers < 0:
        raise ValueError(f"`layers` is {layers}, but must be at least 0; 0 is a linear model.")
