"""Has all ranks act at the same step: rank 0 looks whether to save or to stop, and all hear of it together, a few times a second."""

import os
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import torch
import torch.distributed as dist

from workers.training.spec import RankSpec

LOOK_SECONDS = 0.3
MAX_STEPS_BETWEEN_LOOKS = 32
"""Also bounds how long a training that suddenly becomes slow does not hear that it is to stop."""
COST = 10
"""A checkpoint at the end of an epoch is left out if less than so many times the time that writing takes has passed since the last one."""


class StopAsked(BaseException):
    """All ranks were asked to stop, and did at this step. No `Exception`: a training function that catches those must not catch this."""


class Order(IntEnum):
    GO = 0
    SAVE = 1
    STOP = 2


class Conductor:
    """One for each rank. `step` is called by all ranks for the same steps."""

    def __init__(self, spec: RankSpec, save: Callable[[bool], None] | None = None) -> None:
        """save: writes `last.ckpt`, in all ranks together; told whether it is the last thing that happens. None: nobody wants one."""
        self._spec, self.save = spec, save
        self._left, self._between = 1, 1
        self._looked = self._saved = time.monotonic()
        self._cost = 0.0

    def step(self) -> None:
        """A step was made. Saves, or saves and raises StopAsked, when it is time to."""
        self._left -= 1
        if self._left <= 0:
            self._act(self._agree(self._due))

    def epoch_ended(self) -> None:
        self._act(self._agree(self._due_at_end))

    def finished(self) -> None:
        """The last step was made and all is logged."""
        if self.save:
            self.save(True)

    def stop_is_asked(self) -> bool:
        return os.path.exists(self._spec.stop_file)

    def _due(self) -> Order:
        if self.stop_is_asked():
            return Order.STOP
        late = time.monotonic() - self._saved >= self._spec.params.checkpoint_seconds
        return Order.SAVE if late and self.save else Order.GO

    def _due_at_end(self) -> Order:
        order = self._due()
        if order is Order.GO and self.save and time.monotonic() - self._saved >= COST * self._cost:
            return Order.SAVE
        return order

    def _agree(self, due: Callable[[], Order]) -> Order:
        """What rank 0 finds due, and after how many steps to look again."""
        now = time.monotonic()
        if self._spec.rank == 0:
            took = max(now - self._looked, 1e-6) / self._between
            self._between = max(1, min(int(LOOK_SECONDS / took), 2 * self._between, MAX_STEPS_BETWEEN_LOOKS))
            self._looked, order = now, due()
        else:
            order = Order.GO
        if dist.is_initialized() and dist.get_world_size() > 1:
            told = torch.tensor([order, self._between], device=collective_device())
            dist.broadcast(told, src=0)
            order, self._between = Order(int(told[0])), int(told[1])
        self._left = self._between
        return order

    def _act(self, order: Order) -> None:
        if order is Order.GO:
            return
        if self.save:
            begun = time.monotonic()
            self.save(order is Order.STOP)
            self._saved = time.monotonic()
            self._cost = self._saved - begun
            self._looked = self._saved  # writing is no part of a step's time
        if order is Order.STOP:
            raise StopAsked


class EvaluationStop:
    """Stops validating, testing and predicting, where ranks may have different numbers of batches and so cannot agree on one.

    Rank 0 leaves word in the ranks' store, and the others find it there.
    """

    KEY = "tidemill/stop"

    def __init__(self, conductor: Conductor, rank: int) -> None:
        self._conductor, self._rank, self._looked = conductor, rank, 0.0

    def step(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if self._rank == 0:
            if self._conductor.stop_is_asked():
                self._leave_word()
                raise StopAsked
        elif self.was_asked():
            raise StopAsked

    def was_asked(self) -> bool:
        """Whether rank 0 has left word."""
        return dist.is_initialized() and bool(store().check([self.KEY]))

    def _leave_word(self) -> None:
        if dist.is_initialized():
            store().set(self.KEY, "1")


def store() -> Any:
    """The store through which the ranks found each other. Its keeper is the supervisor, so it outlives every rank."""
    return dist.distributed_c10d._get_default_store()


def collective_device() -> torch.device:
    """Where the tensors of a collective have to be."""
    if dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def any_rank(flag: bool) -> bool:
    """Whether `flag` is true in any rank; asked by all of them together."""
    if not (dist.is_initialized() and dist.get_world_size() > 1):
        return flag
    told = torch.tensor([int(flag)], device=collective_device())
    dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told.item())
