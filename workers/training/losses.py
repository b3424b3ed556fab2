"""Watches the loss: one that is not a finite number is told at its step, and ends the job unless that was declined."""

import math
from typing import Any

import torch

from workers.failures import JobFailure
from workers.training.reporting import RankReporter

MAX_WARNINGS = 10


class NonFiniteLoss(JobFailure):
    """The loss became NaN or infinite, and the configuration did not say to go on."""

    slug, title = "training-failed", "Training failed"

    def __init__(self, value: str, step: int, epoch: int | None, rank: int) -> None:
        where = f"step {step}" if epoch is None else f"step {step} (epoch {epoch})"
        super().__init__(
            f"The loss became {value} at {where} in rank {rank}. Lower the learning rate, clip the gradients "
            "(`trainer.gradient_clip_val`), look for missing values in the data, or use a precision with a wider range; "
            'with `"on_nonfinite_loss": "continue"` the job goes on.'
        )
        self.extra = {"step": step, "epoch": epoch, "value": value, "rank": rank}

    def problem(self) -> dict[str, Any]:
        return {**super().problem(), **self.extra}


class LossWatch:
    """Of one rank. On CPU each loss is looked at as it comes; a GPU is not made to wait, so there `check` looks at all since the last."""

    def __init__(self, reporter: RankReporter, ends: bool) -> None:
        self._reporter, self._ends, self._warned = reporter, ends, 0
        self._waiting: list[tuple[int, int | None, torch.Tensor]] = []
        self.newest_is_finite = True

    def add(self, step: int, epoch: int | None, loss: object) -> None:
        if isinstance(loss, float | int):
            self._judge(step, epoch, float(loss))
        elif isinstance(loss, torch.Tensor) and loss.numel() == 1:
            if loss.device.type == "cpu":
                self._judge(step, epoch, float(loss.detach()))
            else:
                self._waiting.append((step, epoch, loss.detach()))

    def check(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            values = torch.stack([loss.reshape(()).float() for _, _, loss in waiting]).tolist()
            for (step, epoch, _), value in zip(waiting, values, strict=True):
                self._judge(step, epoch, value)

    def _judge(self, step: int, epoch: int | None, value: float) -> None:
        self.newest_is_finite = math.isfinite(value)
        if self.newest_is_finite:
            return
        told = "NaN" if math.isnan(value) else "infinite"
        self._warned += 1
        if self._warned <= MAX_WARNINGS:
            more = "; it is not told again" if self._warned == MAX_WARNINGS else ""
            self._reporter.warning(f"the loss is {told} at step {step}{more}", step=step, epoch=epoch, value=told)
        if self._ends:
            raise NonFiniteLoss(told, step, epoch, self._reporter.rank)
