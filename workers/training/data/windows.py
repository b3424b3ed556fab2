"""Windows of series: which there are, what each is measured from and in, and batches of them as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from workers.training.data.files import Floats
from workers.training.data.loader import Batch, told

Level = Literal["last", "mean", "zero"]
Ints = npt.NDArray[np.int64]
SAMPLE_VALUES = 1_000_000
"""How many values, in windows, are looked at to learn what a series is measured in."""


@dataclass(frozen=True)
class Channels:
    """One series with its covariates. values: float64 (channels, n), gaps bridged; observed: bool (n,), of the series."""

    values: Floats
    observed: npt.NDArray[np.bool_]

    @property
    def rows(self) -> int:
        return len(self.observed)


def channels(series: Floats, covariates: Sequence[Floats], bridge: int) -> Channels:
    """Gaps of at most `bridge` samples hold the value before them: later ones would tell of the future."""
    values = np.stack([carried(np.asarray(one, dtype=np.float64), bridge) for one in (series, *covariates)])
    return Channels(values, np.isfinite(series))


def carried(values: Floats, most: int) -> Floats:
    """float64 (n,): gaps of up to `most` samples filled with the last finite value before them; what else is missing NaN."""
    finite = np.isfinite(values)
    last = np.maximum.accumulate(np.where(finite, np.arange(len(values)), -1))
    following = len(values) - 1 - np.maximum.accumulate(np.where(finite[::-1], np.arange(len(values)), -1))[::-1]
    length = np.where(following >= len(values), len(values), following) - last - 1
    fill = ~finite & (last >= 0) & (length <= most)
    return np.where(finite, values, np.where(fill, values[last], np.nan))


def starts(data: Channels, context: int, horizon: int, first: int, stop: int, stride: int) -> Ints:
    """int64 (k,): first rows of the windows of context+horizon samples within rows [first, stop) that lack nothing.

    A context lacks nothing where its gaps are bridged; what is to be forecast must have been observed.
    """
    span = context + horizon
    if stop - first < span:
        return np.empty(0, np.int64)
    bare = np.concatenate([[0], np.cumsum(~np.isfinite(data.values[:, first:stop]).all(axis=0))])
    unseen = np.concatenate([[0], np.cumsum(~data.observed[first:stop])])
    at = np.arange(0, stop - first - span + 1, stride)
    whole = (bare[at + context] == bare[at]) & (unseen[at + span] == unseen[at + context])
    return np.asarray(first + at[whole], dtype=np.int64)


def levels(contexts: Floats, level: Level) -> Floats:
    """float64 (…, 1): what values of each window (…, context) are measured from."""
    match level:
        case "last":
            return contexts[..., -1:]
        case "mean":
            return np.asarray(contexts.mean(axis=-1, keepdims=True))
        case "zero":
            return np.zeros_like(contexts[..., -1:])


def units(data: Channels, at: Ints, context: int, level: Level) -> list[float]:
    """Per channel, the root mean square of what contexts are about their level: 1 in a window's own units."""
    some = at[np.linspace(0, len(at) - 1, min(len(at), max(1, SAMPLE_VALUES // context))).astype(np.int64)]
    contexts = data.values[:, some[:, None] + np.arange(context)]
    about = contexts - levels(contexts, level)
    # A series that never changes has no unit; a variance at the edge of rounding is none either.
    with np.errstate(over="ignore"):
        scale = np.sqrt(np.mean(about**2, axis=(1, 2)))
    floor = 1e-12 * np.abs(contexts).max(axis=(1, 2))
    return [float(one) if least < one < np.inf else 1.0 for one, least in zip(scale, floor, strict=True)]


class WindowSet(Dataset[Batch]):
    """Windows as tensors, measured from their level in their series' units.

    A batch: context float32 (b, channels, context); target float32 (b, horizon), only with a horizon; index int64 (b,),
    the row where the target begins, or the first row without a horizon; series int64 (b,), which of the series;
    counts bool (b,), false for a repeated window.
    """

    def __init__(
        self, series: Sequence[Channels], at: Sequence[Ints], scales: Sequence[Sequence[float]],
        *, context: int, horizon: int, level: Level, reads_on: bool,
    ) -> None:  # fmt: skip
        self.series, self.scales = series, [np.asarray(scale)[:, None] for scale in scales]
        self.which = np.repeat(np.arange(len(at)), [len(one) for one in at])
        self.at = np.concatenate(at) if at else np.empty(0, np.int64)
        self.context, self.horizon, self.level, self.reads_on = context, horizon, level, reads_on

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, index: int) -> Batch:
        return {name: values[0] for name, values in self.__getitems__([index]).items()}

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        rows, counts = told(indices)
        at, which = self.at[rows], self.which[rows]
        length = self.context + (self.horizon if self.reads_on else 0)
        cut = np.empty((len(rows), len(self.scales[0]), length), np.float32)
        for number in np.unique(which):
            mine = which == number
            values = self.series[number].values[:, at[mine][:, None] + np.arange(length)].swapaxes(0, 1)
            cut[mine] = (values - levels(values[..., : self.context], self.level)) / self.scales[number]
        batch = {
            "context": torch.from_numpy(np.ascontiguousarray(cut[..., : self.context])),
            "index": torch.from_numpy(at + (self.context if self.horizon else 0)),
            "series": torch.from_numpy(which),
            "counts": torch.from_numpy(counts),
        }
        if self.horizon and self.reads_on:
            batch["target"] = torch.from_numpy(np.ascontiguousarray(cut[:, 0, self.context :]))
        return batch

    def in_units(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        """values: (b, k), measured as the batch's windows are. Returns float64 (b, k) in the series' own units, on the CPU."""
        which = batch["series"].cpu().numpy()
        at = batch["index"].cpu().numpy() - (self.context if self.horizon else 0)
        out = values.detach().to("cpu", torch.float64).numpy().copy()
        for number in np.unique(which):
            mine = which == number
            contexts = self.series[number].values[0, at[mine][:, None] + np.arange(self.context)]
            out[mine] = out[mine] * self.scales[number][0] + levels(contexts, self.level)
        return torch.from_numpy(out)
