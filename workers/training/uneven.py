"""Finds ranks whose epochs are of different lengths: their collectives no longer match, and what follows is a hang or a puzzle."""

import contextlib
import math
import time
from typing import Any

import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

from workers.failures import JobFailure
from workers.training.conductor import store
from workers.training.rank_words import text_of

BEGUN = "tidemill/begun"


class UnevenBatches(JobFailure):
    """The ranks have different numbers of batches in an epoch."""

    slug, title = "training-failed", "Training failed"

    def __init__(self, words: str) -> None:
        super().__init__(
            f"The ranks have different numbers of batches: {words}. All must make the same number of steps, for they add up their "
            "gradients in each. Give every rank equally many (a DistributedSampler does, and Lightning adds one by itself unless "
            "`use_distributed_sampler` is false or the data is an iterable), or set `trainer.limit_train_batches`."
        )


def compare_lengths(batches: float) -> None:
    """Called by all ranks together, before the first step."""
    if not _several():
        return
    lengths: list[float] = [0.0] * dist.get_world_size()
    dist.all_gather_object(lengths, float(batches))
    if len(set(lengths)) > 1:
        raise UnevenBatches(", ".join(f"rank {rank} has {_number(n)} in an epoch" for rank, n in enumerate(lengths)))


def may_be_uneven(trainer: Any) -> bool:
    """Whether ranks may have different numbers of batches that `compare_lengths` did not see: iterables say no length, or a wrong one."""
    loaders = trainer.fit_loop._combined_loader.flattened
    return any(not isinstance(each, DataLoader) or isinstance(each.dataset, IterableDataset) for each in loaders)


def knows_of_more(trainer: Any) -> bool:
    """Whether the batch after this one is there already: Lightning looks ahead where a loader has no length."""
    fetcher = trainer.fit_loop._data_fetcher
    return bool(getattr(fetcher, "batches", None)) and trainer.num_training_batches == math.inf


def _number(length: float) -> str:
    return f"{length:.0f}" if math.isfinite(length) else "an unknown number"


class EpochEnds:
    """What each rank leaves in the store about its epochs, for the others to find when something goes wrong."""

    def __init__(self, rank: int) -> None:
        self._rank, self.epoch, self.batches = rank, 0, 0
        self.uncertain = False
        """Whether the loaders' lengths may be others than they say."""
        self._ended = -1

    def batch(self, epoch: int, batches: int) -> None:
        """This rank has so many batches or more in this epoch."""
        self.epoch, self.batches = epoch, batches

    def publish(self) -> None:
        """Where this rank is. Called by a thread, once a second, where loaders do not know their lengths."""
        if _several():
            with contextlib.suppress(RuntimeError):  # the store is gone, and so is the job
                store().set(f"{BEGUN}/{self._rank}", f"{self.epoch} {self.batches}")

    def ended(self) -> None:
        """This rank's epoch is over. Where it is `uncertain`, returns when that of the others is too, before a collective that would
        not match."""
        if not _several() or self._ended == self.epoch:
            return
        self._ended = self.epoch
        store().set(self._key(self._rank), str(self.batches))
        if not self.uncertain:
            return
        others = set(range(dist.get_world_size())) - {self._rank}
        while late := [rank for rank in others if not store().check([self._key(rank)])]:
            for rank in late:
                if (theirs := self._begun(rank)) > self.batches:
                    raise UnevenBatches(
                        f"in epoch {self.epoch} rank {self._rank} had {self.batches}, and rank {rank} has {theirs} or more"
                    )
            time.sleep(0.005)

    def _begun(self, rank: int) -> int:
        """How many batches of this epoch that rank has begun, by its last word."""
        if not store().check([f"{BEGUN}/{rank}"]):
            return 0
        epoch, batches = map(int, store().get(f"{BEGUN}/{rank}").split())
        return batches if epoch == self.epoch else 0

    def explain(self) -> UnevenBatches | None:
        """After a collective failed: whether it was because another rank's epoch had ended."""
        if not _several():
            return None
        for rank in set(range(dist.get_world_size())) - {self._rank}:
            try:
                if not store().check([self._key(rank)]):
                    continue
                theirs = int(store().get(self._key(rank)))
            except RuntimeError:
                return None  # the store is gone as well
            if theirs < self.batches:
                return UnevenBatches(
                    f"in epoch {self.epoch} rank {rank} had {theirs}, and rank {self._rank} has {self.batches} or more"
                )
        return None

    def _key(self, rank: int) -> str:
        return f"tidemill/epoch/{self.epoch}/{rank}"


def _several() -> bool:
    return dist.is_initialized() and dist.get_world_size() > 1


def failed_together(fault: BaseException) -> bool:
    """Whether `fault` is what a rank says when a collective failed, mostly because another rank is gone."""
    return isinstance(fault, dist.DistError) or (
        isinstance(fault, RuntimeError) and any(word in text_of(fault) for word in PEER_WORDS)
    )


PEER_WORDS = ("Connection closed by peer", "Connection reset by peer", "gloo", "NCCL", "Broken pipe", "ProcessGroup")
