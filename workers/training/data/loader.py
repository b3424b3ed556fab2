"""Loaders that know their place: a training that goes on in the middle of an epoch gets the next batch, not the first."""

import os
import warnings
from collections.abc import Iterator, Sized
from typing import Any, Final, Literal

import numpy as np
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.trainer.states import TrainerFn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

Batch = dict[str, torch.Tensor]
EVENED_BY: Final = {"train": "dropping", "validate": "repeating", "test": "repeating", "predict": "repeating"}
NO_BOTTLENECK: Final = ".*does not have many workers which may be a bottleneck.*"


class Shards(DistributedSampler[int]):
    """One rank's share of `size` samples. Every rank has equally many, so no rank waits for another at the end.

    Training drops up to ranks-1 samples to get there, other ones in each epoch. Evaluation repeats some: a repeated
    sample i comes as ~i, which the data sets know, and their batches say in `counts` that it is not to be counted.
    Lightning puts no sampler of its own where there is a DistributedSampler.
    """

    def __init__(
        self, size: int, evened_by: Literal["dropping", "repeating"], *, shuffle: bool, rank: int, ranks: int, seed: int
    ) -> None:
        super().__init__(range(size), ranks, rank, shuffle=shuffle, seed=seed)  # type: ignore[arg-type]
        self.size, self.evened_by, self.skipped = size, evened_by, 0
        self.num_samples = size // ranks if evened_by == "dropping" else -(-size // ranks)
        if self.num_samples == 0:
            raise ValueError(
                f"There are {size:,} samples for {ranks:,} processes. Send more data, or train with fewer `devices`."
            )

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.size) if self.shuffle else None
        order = np.arange(self.size) if order is None else order
        lacking = self.num_samples * self.num_replicas - self.size
        if lacking > 0:
            order = np.concatenate([order, ~np.resize(order, lacking)])
        mine = order[self.rank : self.num_samples * self.num_replicas : self.num_replicas]
        return iter(mine[self.skipped :].tolist())


class Loader(DataLoader[Any]):
    """A DataLoader whose place within an epoch is part of Lightning's checkpoints, through its state."""

    _done = 0
    _resumed: dict[str, int] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # A batch is cut out of an array in one go; processes to do so in would only have to be fed.
        warnings.filterwarnings("ignore", NO_BOTTLENECK)
        super().__init__(*args, **kwargs)

    @property
    def shards(self) -> Shards | None:
        """None where Lightning put a sampler of its own, as it does to train on the same few batches again and again."""
        sampler = getattr(self.batch_sampler, "sampler", None)
        return sampler if isinstance(sampler, Shards) else None

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Begins with the first `next`: until then Lightning may say which epoch it is."""
        resumed, self._resumed, shards = self._resumed, None, self.shards
        self._done = 0
        if shards is not None:
            self._done = resumed["batches"] if resumed and resumed["epoch"] == shards.epoch else 0
            shards.skipped = self._done * self.batch_sampler.batch_size  # type: ignore[union-attr]
        for batch in super().__iter__():
            self._done += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """How many batches of which epoch were handed out, and in which order."""
        if self._resumed is not None:
            return self._resumed
        shards = self.shards
        return {} if shards is None else {"epoch": shards.epoch, "batches": self._done, "seed": shards.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on there, if the epoch that is begun next is the one of the state; another one starts at its beginning."""
        if state and self.shards is not None:
            self._resumed = dict(state)
            self.shards.seed = state["seed"]


def loader(data: Dataset[Any] | Sized, role: str, trainer: Trainer | None, batch_size: int, num_workers: int) -> Loader:
    """This rank's loader. role: `train`, which shuffles by seed and epoch, `validate`, `test` or `predict`."""
    rank, ranks = place(trainer)
    shuffle = role == "train" and not (trainer and trainer.overfit_batches)
    seed = int(os.environ.get("PL_GLOBAL_SEED", 0))
    shards = Shards(len(data), EVENED_BY[role], shuffle=shuffle, rank=rank, ranks=ranks, seed=seed)  # type: ignore[arg-type]
    return Loader(
        data,
        batch_size=batch_size,
        sampler=shards,
        num_workers=num_workers,
        collate_fn=_whole,
        persistent_workers=False,
    )


def without_validation(trainer: Trainer | None) -> None:
    """Have Lightning not ask for validation where no part of the data is for it."""
    if trainer is not None and trainer.state.fn == TrainerFn.FITTING:
        trainer.limit_val_batches = 0


def place(trainer: Trainer | None) -> tuple[int, int]:
    """Which of how many data-parallel ranks this is. A strategy may have several ranks share their data."""
    if trainer is not None:
        told = trainer.distributed_sampler_kwargs or {}
        return told.get("rank", 0), told.get("num_replicas", 1)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _whole(batch: Batch) -> Batch:
    """The data sets here hand out whole batches."""
    return batch


def told(indices: Any) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.bool_]]]:
    """Which samples a batch is of, int64 (b,), and which of them count, bool (b,): see Shards."""
    wanted = np.asarray(indices, dtype=np.int64)
    counts = wanted >= 0
    return np.where(counts, wanted, ~wanted), counts
