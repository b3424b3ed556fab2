"""`SeriesWindows`: from files of series to loaders of windows, split in time."""

from typing import Any, Literal

import numpy as np
import torch
from lightning.pytorch import LightningDataModule

from workers.training.data.arguments import at_least, nonzero, shares
from workers.training.data.files import read_series
from workers.training.data.loader import Batch, Loader, loader, without_validation
from workers.training.data.splits import agreed, borders, why_none
from workers.training.data.windows import Channels, Ints, Level, WindowSet, channels, starts, units


class SeriesWindows(LightningDataModule):
    """Windows of one series, or of several: `context` samples to look at and `horizon` samples to forecast.

    The rows are split in time: first those to train on, then a share for validation, last a share for test. No window
    crosses the borders, and none has a missing value in it. Each window is measured from its own last value (from its mean
    where there is no horizon), in a unit learned on the training rows alone. The model of this package that it is used with
    takes its sizes from here; a horizon need be said only once, here or in the model.

    series: One series or a list of several, from each of which windows are taken.
    context: Samples of a window that the model sees.
    horizon: Samples after them that it has to forecast. Where left out, the model's own.
    covariates: Other series of the same length, seen up to where the forecast begins; with one series only.
    validation: Share of the rows for validation, at least 0 and below 1.
    test: Share of the rows, the last ones, for test.
    stride: Samples from one window to the next.
    batch_size: Windows in a batch, in each process.
    bridge: Gaps of up to so many samples count as their last value before, where they are looked at.
    level: What a window is measured from, its last value, its mean or zero.
    predict: Which windows a prediction is made for, all of the series, those of the test rows, or the last one.
    num_workers: Processes that make batches beside the training; batches are cheap, so none are needed.
    """

    def __init__(
        self, series: str | list[str], context: int, horizon: int | None = None,
        covariates: str | list[str] | None = None, validation: float = 0.2, test: float = 0.1, stride: int = 1,
        batch_size: int = 32, bridge: int = 0, level: Literal["last", "mean", "zero"] | None = None,
        predict: Literal["all", "test", "last"] = "all", num_workers: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        shares(validation, test)
        self.paths = [series] if isinstance(series, str) else list(series)
        self.covariate_paths = [covariates] if isinstance(covariates, str) else list(covariates or ())
        if not self.paths:
            raise ValueError("`series` is an empty list. Name at least one series.")
        if self.covariate_paths and len(self.paths) > 1:
            raise ValueError(f"`covariates` go with one series, and `series` names {len(self.paths)}.")
        self.context = at_least("context", context, 1, "samples")
        self.horizon = None if horizon is None else at_least("horizon", horizon, 1, "samples")
        self.validation, self.test, self.stride = validation, test, at_least("stride", stride, 1, "samples")
        self.batch_size = at_least("batch_size", batch_size, 1)
        self.bridge, self.num_workers = at_least("bridge", bridge, 0), at_least("num_workers", num_workers, 0)
        self.level: Level | None = level
        self.predict = predict
        self.series: list[Channels] = []
        self.scales: list[list[float]] = []
        self.last_set: WindowSet | None = None

    @property
    def channels(self) -> int:
        """The series and its covariates."""
        return 1 + len(self.covariate_paths)

    def setup(self, stage: str | None = None) -> None:
        """Read the series and learn their units. Raises ValueError where they hold no window."""
        if not self.validation:
            without_validation(self.trainer)
        if self.series:
            return
        self.horizon = agreed(self.horizon, getattr(self.trainer and self.trainer.lightning_module, "horizon", None))
        self.level = self.level or ("last" if self.horizon else "mean")
        covariates = [read_series(path, "covariates") for path in self.covariate_paths]
        for path in self.paths:
            values = read_series(path, "series")
            for other in covariates:
                if len(other) != len(values):
                    raise ValueError(
                        f"`covariates` has {len(other):,} rows where `series` has {len(values):,}. Make them equal."
                    )
            self.series.append(channels(np.asarray(values), covariates, self.bridge))
        for data in self.series:
            at = self._starts(data, "train")
            at = at if len(at) else starts(data, self.context, 0, 0, data.rows, 1)
            self.scales.append(units(data, at, self.context, self.level) if len(at) else [1.0] * self.channels)

    def train_dataloader(self) -> Loader:
        return self._loader("train")

    def val_dataloader(self) -> Loader:
        nonzero("validation", self.validation)
        return self._loader("validate")

    def test_dataloader(self) -> Loader:
        nonzero("test", self.test)
        return self._loader("test")

    def predict_dataloader(self) -> Loader:
        return self._loader("predict")

    def in_units(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """values: (b, k), measured as the batch's windows are. Returns float64 (b, k) in the series' own units, on the CPU."""
        assert self.last_set is not None, "a batch comes first"
        return self.last_set.in_units(values, batch)

    def unit(self, batch: Batch) -> torch.Tensor:
        """float32 (b,): what 1 is in the series' own units, for each window of the batch."""
        units = torch.tensor([one[0] for one in self.scales], dtype=torch.float32, device=batch["series"].device)
        return units[batch["series"]]

    def state_dict(self) -> dict[str, Any]:
        return {"context": self.context, "horizon": self.horizon, "level": self.level, "scales": self.scales}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Measure as in training: one series in the unit of the one trained on; several, each in its own."""
        for name in ("context", "horizon", "level"):
            if state[name] != getattr(self, name):
                raise ValueError(
                    f"`{name}` is {getattr(self, name)!r}, but the checkpoint was trained with {state[name]!r}."
                )
        if [len(one) for one in state["scales"]] == [len(one) for one in self.scales]:
            self.scales = [list(map(float, one)) for one in state["scales"]]

    def _starts(self, data: Channels, role: str) -> Ints:
        if role != "predict":
            return starts(
                data, self.context, self.horizon or 0, *borders(data, role, self.validation, self.test), self.stride
            )
        rows = data.rows
        if self.predict == "last":
            return starts(data, self.context, 0, max(0, rows - self.context), rows, 1)
        first = borders(data, "test", self.validation, self.test)[0] if self.predict == "test" else 0
        # Counted from the end, so that with any stride the last window is one of them.
        first += (rows - first - self.context) % self.stride if rows - first > self.context else 0
        return starts(data, self.context, 0, first, rows, self.stride)

    def _loader(self, role: str) -> Loader:
        assert self.horizon is not None, "setup comes first"
        assert self.level is not None
        at = [self._starts(data, role) for data in self.series]
        if not any(map(len, at)):
            longest = max(self.series, key=lambda one: one.rows)
            part = borders(longest, role, self.validation, self.test)
            raise ValueError(why_none(longest, role, part, self.context, self.horizon))
        windows = WindowSet(
            self.series, at, self.scales, context=self.context, horizon=self.horizon, level=self.level,
            reads_on=role != "predict",
        )  # fmt: skip
        self.last_set = windows
        return loader(windows, role, self.trainer, self.batch_size, self.num_workers)
