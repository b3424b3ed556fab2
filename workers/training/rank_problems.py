"""How a rank tells that it failed: the user's own traceback, the time, and whether it is a cause or the echo of another rank's end."""

import errno
import os
import pickle
import re
import time
import zipfile
from pathlib import Path
from typing import Any, Final

import torch

from workers.failures import JobFailure, storage_words
from workers.training.checkpoints import holds_objects
from workers.training.parsing import ConfigFaults
from workers.training.rank_frames import is_of_built_in, is_of_loading, is_of_user, traceback_of
from workers.training.rank_words import limited, text_of, words_of
from workers.training.spec import RankSpec
from workers.training.uneven import failed_together

NO_CHECKPOINT: Final = (
    *(LookupError, AttributeError, TypeError, ValueError, EOFError),
    *(pickle.UnpicklingError, zipfile.BadZipFile),
)
"""What loading a file ends in that is something else."""
PATH: Final = re.compile(r"(?:/[^/\s'\"`,;:()]+)+")


class RankFailed(JobFailure):
    """Carries the whole problem of a rank to where children report it."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem["detail"])
        self._problem = problem

    def problem(self) -> dict[str, Any]:
        return self._problem


def problem_of(fault: BaseException, spec: RankSpec, building: bool) -> dict[str, Any]:
    """building: nothing has run yet, so what is wrong is the configuration, unless the user's own code says it."""
    if isinstance(fault, SystemExit) and isinstance(fault.__context__, KeyboardInterrupt):
        fault = fault.__context__  # Lightning exits after one
    told: dict[str, Any] = {"rank": spec.rank, "at": time.time()}
    if not _is_wrong_argument(fault):
        told["traceback"] = traceback_of(fault)
    if failed_together(fault) and torch.distributed.is_initialized():
        told["echo"] = True
    named = _named(fault, spec, building)
    return {**named, "detail": limited(named["detail"]), **told}


def _is_wrong_argument(fault: BaseException) -> bool:
    """Whether it is what our own data and models say of a configuration they cannot use. Where in our files is no use to anybody."""
    return isinstance(fault, ValueError) and is_of_built_in(fault)


def _named(fault: BaseException, spec: RankSpec, building: bool) -> dict[str, Any]:
    if isinstance(fault, JobFailure):
        return fault.problem()
    words = limited(words_of(fault))
    if isinstance(fault, ConfigFaults):
        words = text_of(fault)  # each with its pointer
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text_of(fault):
        return _problem(
            "out-of-memory", "Out of memory", 500, f"Rank {spec.rank} ran out of memory. {_memory_hint(spec)} ({words})"
        )
    if isinstance(fault, OSError) and fault.errno in (28, 122):
        return _problem("internal", "Internal error", 500, storage_words(fault))
    if spec.checkpoint and (detail := _of_loading(fault, spec.checkpoint, words)):
        return _invalid(detail)
    if _is_wrong_argument(fault):
        return _invalid(f"The configuration could not be used: {PATH.sub(_name_alone, text_of(fault))}")
    known = isinstance(fault, ConfigFaults) or (isinstance(fault, Exception) and not is_of_user(fault))
    if (building and known) or type(fault).__name__ == "MisconfigurationException":
        return _invalid(f"The configuration could not be used: {words}")
    return _problem("training-failed", "Training failed", 500, f"Rank {spec.rank} raised {words}")


def _of_loading(fault: BaseException, checkpoint: str, words: str) -> str | None:
    """What is wrong with the checkpoint, where that is what `fault` is about."""
    if not is_of_loading(fault):
        return None
    name = Path(checkpoint).name
    if (isinstance(fault, pickle.UnpicklingError) or "weights_only" in text_of(fault)) and _has_objects(checkpoint):
        return (
            f"The checkpoint {name} holds Python objects, which are not loaded, for that could run code of whoever wrote it. "
            f"Save a checkpoint without them: keep objects out of `save_hyperparameters`. ({words})"
        )
    unreadable = isinstance(fault, RuntimeError) and "state_dict" not in text_of(fault) and not failed_together(fault)
    unreadable |= isinstance(fault, OSError) and fault.errno == errno.EINVAL  # one that was cut off
    if isinstance(fault, NO_CHECKPOINT) or unreadable:
        return f"{name} is no checkpoint that Lightning wrote: {words}"
    return None


def _has_objects(checkpoint: str) -> bool:
    try:
        return holds_objects(Path(checkpoint))
    except Exception:  # it is no archive of torch's, or a broken one
        return False


def _name_alone(found: re.Match[str]) -> str:
    """A path of this machine says nothing to whoever sent the configuration."""
    path = found[0]
    return os.path.basename(path) if os.path.isdir(os.path.dirname(path)) and os.path.dirname(path) != "/" else path


def _memory_hint(spec: RankSpec) -> str:
    if spec.resolved.accelerator == "cuda":
        if spec.resolved.strategy.lower().startswith("ddp"):
            return 'Use a smaller batch, or strategy "fsdp", which divides the model among the ranks where "ddp" gives each a whole one.'
        return "Use a smaller batch, or a lower precision such as bf16-mixed."
    return "Use a smaller batch or model, fewer processes, or a worker with more memory."


def _problem(slug: str, title: str, status: int, detail: str) -> dict[str, Any]:
    return {"type": f"/problems/{slug}", "title": title, "status": status, "detail": detail}


def _invalid(detail: str) -> dict[str, Any]:
    return _problem("invalid-input", "Invalid input", 422, detail)
