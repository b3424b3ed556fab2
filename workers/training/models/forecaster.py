"""`Forecaster`: what a series does next."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.training.data.loader import Batch
from workers.training.models.base import Learner, counted
from workers.training.models.nets import forecasting

LOSSES = {"mae": functional.l1_loss, "mse": functional.mse_loss, "huber": functional.smooth_l1_loss}


class Forecaster(Learner):
    """Forecasts the next `horizon` samples of a series from the `context` samples before them.

    It begins as the forecast that nothing changes, and learns a linear map of the context; kinds other than linear learn
    beside it what is not linear. Logs `train_loss`, `val_loss` and `val_mae` (`test_loss`, `test_mae`), the latter in the
    series' own units, and with `season` `val_mae_naive` too, the same for the forecast that repeats the last season.
    A prediction has `index`, the row where the forecast begins, `prediction`, float64 (b, horizon) in the series' own
    units, and `series`, the number of the series where there are several.

    horizon: Samples to forecast. Where left out, what the data says.
    kind: linear, or beside it an mlp, a tcn (causal convolutions) or a transformer.
    width: Units of each layer, for kinds other than linear.
    layers: How many layers.
    dropout: Share of units left out in training.
    loss: mae, mse or huber, of values in the data's unit.
    season: Samples of one season, such as 52 in a weekly series, to compare with the naive forecast.
    learning_rate: Of AdamW, which is used where the configuration has no optimizer.
    weight_decay: Of AdamW.
    context: Samples to look at. Where left out, what the data says.
    channels: The series and its covariates. Where left out, what the data says.
    """

    SIZES = ("horizon", "context", "channels")

    def __init__(
        self, horizon: int | None = None, kind: Literal["linear", "mlp", "tcn", "transformer"] = "linear",
        width: int = 64, layers: int = 3, dropout: float = 0.0, loss: Literal["mae", "mse", "huber"] = "mae",
        season: int | None = None, learning_rate: float = 2e-3, weight_decay: float = 1e-2,
        context: int | None = None, channels: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, weight_decay)
        for name, value in (("horizon", horizon), ("width", width), ("layers", layers), ("season", season)):
            if value is not None and value < 1:
                raise ValueError(f"`{name}` is {value}, but must be at least 1.")
        self.save_hyperparameters()
        self.season = season

    @property
    def horizon(self) -> int | None:
        return self.hparams["horizon"]  # type: ignore[no-any-return]

    def network(self) -> nn.Module:
        h = self.hparams
        if self.season is not None and self.season > h["context"]:
            raise ValueError(
                f"`season` is {self.season}, but only {h['context']} samples before a forecast are seen. Make the data's "
                f"`context` at least {self.season}, or leave `season` out."
            )
        return forecasting(h["kind"], h["channels"], h["context"], h["horizon"], h["width"], h["layers"], h["dropout"])

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = LOSSES[self.hparams["loss"]](self(batch["context"]), batch["target"])
        return self.tell_training(loss, batch)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("val", batch)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self._evaluate("test", batch)

    def predict_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        prediction = self(batch["context"])
        data: Any = self.trainer.datamodule
        if hasattr(data, "in_units"):
            prediction = data.in_units(prediction, batch)
        several = {"series": batch["series"]} if len(getattr(data, "paths", ())) > 1 else {}
        return counted({"index": batch["index"], **several, "prediction": prediction}, batch)

    def naive(self, context: Tensor) -> Tensor:
        """(b, channels, context) → (b, horizon): the last season again, as often as it takes."""
        assert self.season is not None
        assert self.horizon is not None
        again = torch.arange(self.horizon, device=context.device) % self.season
        return context[:, 0, context.shape[2] - self.season + again]

    def _evaluate(self, prefix: str, batch: Batch) -> None:
        forecast, target = self(batch["context"]).float(), batch["target"].float()
        data: Any = self.trainer.datamodule
        unit = data.unit(batch) if hasattr(data, "unit") else torch.ones_like(target[:, 0])
        losses = LOSSES[self.hparams["loss"]](forecast, target, reduction="none").mean(1)
        each = {f"{prefix}_loss": losses, f"{prefix}_mae": (forecast - target).abs().mean(1) * unit}
        if self.season is not None:
            each[f"{prefix}_mae_naive"] = (self.naive(batch["context"]).float() - target).abs().mean(1) * unit
        self.tell(each, batch)
