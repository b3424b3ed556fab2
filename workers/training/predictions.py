"""What `predict_step` returned, batch by batch and rank by rank, as one table in the order of the samples."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from workers.training.conductor import any_rank
from workers.training.reporting import RankReporter

MAX_COLUMNS = 4_096
IN_TURN = 1 << 32
"""From here on, an index says only in which order batches came."""
Columns = dict[str, npt.NDArray[Any]]


class Predictions:
    """Of one rank, while it predicts; a callback (`conductor_watching`) hands over each batch."""

    def __init__(self, reporter: RankReporter) -> None:
        self._reporter, self._parts, self._refused = reporter, list[Columns](), False

    def add(self, trainer: Any, outputs: Any, batch_idx: int, dataloader_idx: int) -> None:
        columns = dict(_columns(outputs))
        if not columns:
            if not self._refused:
                self._refused = True
                self._reporter.warning(
                    f"predict_step returned {type(outputs).__name__}, which is no table: return a tensor whose first dimension is the "
                    "batch, or a dict, list or tuple of such tensors"
                )
            return
        rows = min(len(column) for column in columns.values())
        index = _indices(trainer, batch_idx, dataloader_idx)
        if index is None or len(index) != rows:
            # An iterable has no indices, and a step may return something else than a row for each sample: the order of batches then.
            turn = 1 + batch_idx * trainer.world_size + trainer.global_rank
            index = [turn * IN_TURN + row for row in range(rows)]
        several = {"dataloader": np.full(rows, dataloader_idx)} if len(trainer.num_predict_batches) > 1 else {}
        columns = {name: column[:rows] for name, column in columns.items()}
        self._parts.append({"index": np.asarray(index, dtype=np.int64), **several, **columns})

    def gathered(self, rank: int) -> Columns:
        """All ranks' predictions, in rank 0; nothing in the others. Called by all of them together."""
        mine = joined(self._parts)
        if not (dist.is_initialized() and dist.get_world_size() > 1):
            return ordered(mine)
        any_rank(False)
        # Not through files: the ranks may have no folder in common.
        parts: list[Any] | None = [None] * dist.get_world_size() if rank == 0 else None
        dist.gather_object(mine, parts)
        return ordered(joined(parts)) if parts else {}


def joined(parts: Sequence[Columns]) -> Columns:
    parts = [part for part in parts if part]
    names = [name for name in (parts[0] if parts else {}) if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def ordered(columns: Columns) -> Columns:
    """By dataloader, series and sample. A sample that a sampler gave to two ranks, to make them even, is there once."""
    if not columns:
        return {}
    keys = [columns[name] for name in ("dataloader", "series", "index") if name in columns and columns[name].ndim == 1]
    _, first = np.unique(np.stack(keys), axis=1, return_index=True)
    table = {name: column[first] for name, column in columns.items()}
    if table["index"].dtype.kind == "i" and (table["index"] >= IN_TURN).any():
        table["index"] = np.arange(len(first))
    return table


def _indices(trainer: Any, batch_idx: int, dataloader_idx: int) -> list[int] | None:
    loader = trainer.predict_loop._combined_loader.flattened[dataloader_idx]
    seen = getattr(getattr(loader, "batch_sampler", None), "seen_batch_indices", None)
    return seen[batch_idx] if seen and batch_idx < len(seen) else None


def _columns(outputs: Any, name: str = "") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The columns of one batch: one for each number that a sample has."""
    match outputs:
        case torch.Tensor() | np.ndarray():
            yield from _of_array(outputs, name or "prediction")
        case Mapping():
            for key, value in outputs.items():
                yield from _columns(value, f"{name}_{key}" if name else str(key))
        case list() | tuple() if outputs and all(isinstance(each, str | int | float) for each in outputs):
            yield name or "prediction", np.asarray(outputs)
        case list() | tuple():
            for number, value in enumerate(outputs):
                yield from _columns(value, f"{name or 'output'}_{number}")


def _of_array(values: Any, name: str) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype in (torch.bfloat16, torch.float16) else values).numpy()
    if values.ndim == 0:
        values = values.reshape(1)
    flat = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
    if values.ndim == 1:
        yield name, flat[:, 0]
    elif flat.shape[1] <= MAX_COLUMNS:
        for number in range(flat.shape[1]):
            yield f"{name}_{number}", flat[:, number]
