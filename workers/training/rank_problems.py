"""How a rank tells that it failed: the user's own traceback, the time, and whether it is a cause or the echo of another rank's end."""

import time
import traceback
from pathlib import Path
from typing import Any, Final

import torch

from workers.failures import JobFailure, storage_words
from workers.training.parsing import ConfigFaults
from workers.training.spec import RankSpec
from workers.training.uneven import failed_together

MAX_TRACEBACK = 16_000
OURS: Final = str(Path(__file__).parent.parent)
THEIRS: Final = tuple(f"{OURS}/training/{part}/" for part in ("models", "data"))
"""Ours as well, but read by users as the code of their model."""


class RankFailed(JobFailure):
    """Carries the whole problem of a rank to where children report it."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem["detail"])
        self._problem = problem

    def problem(self) -> dict[str, Any]:
        return self._problem


def problem_of(fault: BaseException, spec: RankSpec, building: bool) -> dict[str, Any]:
    """building: nothing has run yet, so what is wrong is the configuration."""
    told: dict[str, Any] = {"rank": spec.rank, "at": time.time(), "traceback": traceback_of(fault)}
    if failed_together(fault) and torch.distributed.is_initialized():
        told["echo"] = True
    return {**_named(fault, spec, building), **told}


def _named(fault: BaseException, spec: RankSpec, building: bool) -> dict[str, Any]:
    if isinstance(fault, JobFailure):
        return fault.problem()
    words = f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
    if isinstance(fault, ConfigFaults):
        words = str(fault)  # each with its pointer
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(fault):
        return _problem(
            "out-of-memory", "Out of memory", 500, f"Rank {spec.rank} ran out of memory. {_memory_hint(spec)} ({words})"
        )
    if isinstance(fault, OSError) and fault.errno in (28, 122):
        return _problem("internal", "Internal error", 500, storage_words(fault))
    if type(fault).__name__ == "UnpicklingError" or "weights_only" in str(fault):
        return _problem(
            "invalid-input",
            "Invalid input",
            422,
            f"The checkpoint {spec.checkpoint} holds Python objects, which are not loaded, for that could run code of whoever wrote it. "
            f"Save a checkpoint without them: keep objects out of `save_hyperparameters`. ({words})",
        )
    if building or type(fault).__name__ == "MisconfigurationException":
        return _problem("invalid-input", "Invalid input", 422, f"The configuration could not be used: {words}")
    return _problem("training-failed", "Training failed", 500, f"Rank {spec.rank} raised {words}")


def _memory_hint(spec: RankSpec) -> str:
    if spec.resolved.accelerator == "cuda":
        if spec.resolved.strategy.lower().startswith("ddp"):
            return 'Use a smaller batch, or strategy "fsdp", which divides the model among the ranks where "ddp" gives each a whole one.'
        return "Use a smaller batch, or a lower precision such as bf16-mixed."
    return "Use a smaller batch or model, fewer processes, or a worker with more memory."


def _problem(slug: str, title: str, status: int, detail: str) -> dict[str, Any]:
    return {"type": f"/problems/{slug}", "title": title, "status": status, "detail": detail}


def traceback_of(fault: BaseException) -> str:
    """As Python prints it, from the first frame that is not ours on."""
    where = fault.__traceback__
    while where is not None and where.tb_next is not None and _is_ours(where.tb_frame.f_code.co_filename):
        where = where.tb_next
    text = "".join(traceback.format_exception(type(fault), fault, where))
    return text if len(text) <= MAX_TRACEBACK else f"…\n{text[-MAX_TRACEBACK:]}"


def _is_ours(file: str) -> bool:
    return file.startswith(OURS) and not file.startswith(THEIRS)
