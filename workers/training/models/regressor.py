"""`Regressor`: a number of a row of a table."""

from typing import Any

from torch import Tensor

from workers.training.data.loader import Batch
from workers.training.models.base import counted
from workers.training.models.tabular import Tabular, checked


class Regressor(Tabular):
    """Predicts a number of a row. Use it with `Table`.

    Logs `train_loss`, `val_loss` (mean square error, of the target standardised), `val_mae` in the target's own units and
    `val_mae_naive`, the same of always saying the median of training (`test_…` likewise). A prediction has `index`, the row,
    and `value`, float64 (b,), in the target's own units.

    width: Units of each layer.
    layers: How many layers beside the linear map.
    dropout: Share of units left out in training.
    learning_rate: Of AdamW, which is used where the configuration has no optimizer.
    weight_decay: Of AdamW.
    inputs: Numbers in a row of features. Where left out, what the data says.
    """

    SIZES = ("inputs",)
    target_kind = "value"

    def __init__(
        self, width: int = 64, layers: int = 2, dropout: float = 0.0, learning_rate: float = 3e-3,
        weight_decay: float = 1e-2, inputs: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, weight_decay)
        checked(width, layers)
        self.save_hyperparameters()

    def outputs(self) -> int:
        return 1

    def losses(self, said: Tensor, target: Tensor) -> Tensor:
        return (said[:, 0] - target).square()

    def measures(self, prefix: str, said: Tensor, target: Tensor, data: Any) -> dict[str, Tensor]:
        known = getattr(getattr(data, "encoding", None), "target", None)
        center, scale = (known.center, known.scale) if known else (0.0, 1.0)
        each = {f"{prefix}_mae": (said[:, 0] - target).abs() * scale}
        if known is not None:
            each[f"{prefix}_mae_naive"] = (target - (known.usual - center) / scale).abs() * scale
        return each

    def predict_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        value = self(batch["features"])[:, 0]
        data: Any = self.trainer.datamodule
        value = data.in_units(value) if hasattr(data, "in_units") else value.float()
        return counted({"index": batch["index"], "value": value}, batch)
