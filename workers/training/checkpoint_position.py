"""Going on in the middle of an epoch with the batches that come next, and with the random numbers that come next.

Lightning remembers how many batches there were, and then begins at the first one again, unless the loader is one with a `state_dict`.
"""

from typing import Any

import torch

SINGLE_PROCESS = "_SingleProcessDataLoaderIter"


class Position:
    """Of one rank's training loop. Random numbers are only kept for a world of one: a checkpoint has room for one rank's."""

    def __init__(self, world_size: int) -> None:
        self._keeps_random = world_size == 1
        self._epoch_began: dict[str, torch.Tensor] = {}
        self._loaded: dict[str, Any] = {}

    def epoch_begins(self) -> None:
        """A loader that shuffles takes its seed after this."""
        self._epoch_began = self._random()

    def state(self) -> dict[str, Any]:
        return {"epoch": self._epoch_began, "now": self._random()} if self._epoch_began else {}

    def load(self, state: dict[str, Any]) -> None:
        self._loaded = state

    def restore(self, trainer: Any) -> int:
        """Before the first step: be where the checkpoint was, if one was loaded. Returns after how many batches of the epoch that is."""
        loop = trainer.fit_loop
        if not loop.is_resuming:
            return 0
        random, self._loaded = self._loaded, {}
        done: int = loop.epoch_loop.batch_progress.current.processed
        if not loop.restarted_mid_epoch or done >= trainer.num_training_batches:
            done = 0
        else:
            self._epoch_began = random.get("epoch") or {}
        if not all(hasattr(loader, "load_state_dict") for loader in loop._combined_loader.flattened):
            self._set_random(random.get("epoch" if done else "now"))
            if trainer.current_epoch > 0:
                self._begin_again(loop, trainer.current_epoch)
            _skip(loop._data_fetcher, done)
        if done:
            self._set_random(random.get("now"))
        return done

    def _begin_again(self, loop: Any, epoch: int) -> None:
        """Lightning made the iterator before it told the samplers which epoch it is."""
        from lightning.fabric.utilities.data import _set_sampler_epoch

        for loader in loop._combined_loader.flattened:
            _set_sampler_epoch(loader, epoch)
        iter(loop._data_fetcher)

    def _random(self) -> dict[str, torch.Tensor]:
        if not self._keeps_random:
            return {}
        states = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            states["cuda"] = torch.cuda.get_rng_state()
        return states

    def _set_random(self, states: dict[str, torch.Tensor] | None) -> None:
        if not states or not self._keeps_random:
            return
        torch.set_rng_state(states["cpu"].cpu())
        if "cuda" in states and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.set_rng_state(states["cuda"].cpu())


def _skip(fetcher: Any, batches: int) -> None:
    """Pass over so many batches: without loading them where only their indices have to be drawn."""
    if not batches:
        return
    iterators = fetcher.combined_loader._iterator.iterators
    if fetcher.length is None:
        for _ in range(batches):
            next(fetcher)
    elif (
        len(iterators) == 1
        and type(iterators[0]).__name__ == SINGLE_PROCESS
        and hasattr(iterators[0]._dataset_fetcher.dataset, "__getitem__")
    ):
        for _ in range(batches):
            next(iterators[0]._sampler_iter)
        iterators[0]._num_yielded += batches
    else:
        for _ in range(batches):
            next(fetcher.iterator)
