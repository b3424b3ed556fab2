"""`Autoencoder`: how unlike the rest of its series a window is."""

from typing import Any

from torch import Tensor, nn

from workers.training.data.loader import Batch
from workers.training.models.base import Learner, counted
from workers.training.models.nets import Perceptron


class Autoencoder(Learner):
    """Learns to tell each window in few numbers and to draw it again from them; what it draws badly is unusual.

    Use it with `SeriesWindows` without a horizon. Logs `train_loss` and `val_loss` (`test_loss`), the mean square error in
    the data's unit, and `val_score` (`test_score`), the mean score. A prediction has `index`, a window's first row, `score`,
    float64 (b,), the root mean square error of the window as drawn again in the series' own units, `peak`, the row where
    the error is greatest, and `series`, the number of the series where there are several.

    code: How many numbers a window is told in.
    width: Units of each layer.
    layers: Layers on the way to the code, and back.
    dropout: Share of units left out in training.
    learning_rate: Of AdamW, which is used where the configuration has no optimizer.
    weight_decay: Of AdamW.
    context: Samples of a window. Where left out, what the data says.
    channels: The series and its covariates. Where left out, what the data says.
    """

    SIZES = ("context", "channels")
    horizon = 0

    def __init__(
        self, code: int = 8, width: int = 128, layers: int = 2, dropout: float = 0.0, learning_rate: float = 1e-3,
        weight_decay: float = 1e-2, context: int | None = None, channels: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, weight_decay)
        for name, value in (("code", code), ("width", width), ("layers", layers)):
            if value < 1:
                raise ValueError(f"`{name}` is {value}, but must be at least 1.")
        self.save_hyperparameters()

    def network(self) -> nn.Module:
        h = self.hparams
        size = h["channels"] * h["context"]
        return nn.Sequential(
            Perceptron(size, h["width"], h["layers"], h["dropout"]),
            nn.Linear(h["width"], h["code"]),
            Perceptron(h["code"], h["width"], h["layers"], h["dropout"]),
            nn.Linear(h["width"], size),
            nn.Unflatten(1, (h["channels"], h["context"])),
        )

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        return self.tell_training(self._errors(batch).square().mean(), batch)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("val", batch)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("test", batch)

    def predict_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        errors = self._errors(batch)[:, 0].float()
        peak = batch["index"] + errors.abs().argmax(1)
        data: Any = self.trainer.datamodule
        several = {"series": batch["series"]} if len(getattr(data, "paths", ())) > 1 else {}
        score = self._score(errors, batch).double()
        return counted({"index": batch["index"], **several, "score": score, "peak": peak}, batch)

    def _errors(self, batch: Batch) -> Tensor:
        """(b, channels, context), in the data's unit."""
        drawn: Tensor = self(batch["context"])
        return drawn - batch["context"]

    def _score(self, errors: Tensor, batch: Batch) -> Tensor:
        """errors: (b, context). Returns (b,), in the series' own units."""
        data: Any = self.trainer.datamodule
        score = errors.square().mean(1).sqrt()
        if hasattr(data, "unit"):
            score = score * data.unit(batch)
        return score

    def _evaluate(self, prefix: str, batch: Batch) -> None:
        errors = self._errors(batch).float()
        losses = errors.square().mean((1, 2))
        self.tell({f"{prefix}_loss": losses, f"{prefix}_score": self._score(errors[:, 0], batch)}, batch)
