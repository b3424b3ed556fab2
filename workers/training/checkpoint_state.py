"""What Lightning's own checkpoint callbacks remember, across attempts: each attempt has a folder of its own, and so have their files."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.training.checkpoints import fault_of, has_finite_weights, link_or_copy
from workers.training.spec import LAST, RankSpec

PATHS = ("best_model_path", "kth_best_model_path", "last_model_path")


def relocate(spec: RankSpec, trainer: Any, checkpoint: dict[str, Any], key: str) -> None:
    """Have the checkpoint callbacks go on with the earlier attempt's best ones, which are brought into this attempt's folder.

    `key` is where our own callback left the name of the earlier folder. From another job's checkpoint they start anew.
    """
    states: dict[str, Any] = checkpoint.get("callbacks") or {}
    ours = [name for name, state in states.items() if isinstance(state, dict) and "best_model_path" in state]
    earlier = states.get(key, {}).get("folder")
    if not spec.resumes or earlier is None or spec.resumes_in is None:
        for name in ours:
            del states[name]
        return
    brought: dict[str, str] = {}
    if spec.rank == 0:
        for name in ours:
            brought |= dict(_bring(states[name], Path(earlier), Path(spec.resumes_in), Path(spec.folder)))
    # Rank 0's folder is that of the callbacks in all ranks, which must agree; on another machine it may have another path.
    brought, folder = trainer.strategy.broadcast((brought, spec.folder))
    for name in ours:
        _rename(states[name], brought, Path(earlier), Path(folder))


def _bring(state: dict[str, Any], earlier: Path, there: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Files of the folder that was called `earlier`, on the machine that wrote the state, and is `there` on this one."""
    for name in {*(state.get(key) for key in PATHS), *state.get("best_k_models", {})} - {"", None}:
        if not Path(name).is_relative_to(earlier):
            continue
        path, target = there / Path(name).relative_to(earlier), folder / Path(name).relative_to(earlier)
        if not path.exists() or fault_of(path) == "it is not complete":
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            link_or_copy(path, target)
        yield name, str(target)


def _rename(state: dict[str, Any], brought: dict[str, str], earlier: Path, folder: Path) -> None:
    if (dirpath := state.get("dirpath")) and Path(dirpath).is_relative_to(earlier):
        state["dirpath"] = str(folder / Path(dirpath).relative_to(earlier))
    for key in PATHS:
        if key in state:
            state[key] = brought.get(state[key], "")
    if "best_k_models" in state:
        state["best_k_models"] = {
            brought[name]: score for name, score in state["best_k_models"].items() if name in brought
        }


def best_of(trainer: Any, folder: Path) -> Path | None:
    """The best checkpoint that the callbacks know of, with a finite score, where there is one, and finite weights."""
    for path in _candidates(trainer, folder):
        if path.exists() and path.is_relative_to(folder) and has_finite_weights(path):
            return path
    return None


def _candidates(trainer: Any, folder: Path) -> Iterator[Path]:
    newest = []
    for callback in trainer.checkpoint_callbacks:
        scores = {name: float(score) for name, score in getattr(callback, "best_k_models", {}).items()}
        sign = -1 if getattr(callback, "mode", "min") == "max" else 1
        finite = [name for name, score in scores.items() if math.isfinite(score)]
        yield from (Path(name) for name in sorted(finite, key=lambda name: sign * scores[name]))
        best = getattr(callback, "best_model_path", "")
        if best and best not in scores:
            newest.append(Path(best))
    # These have no scores of their own, and are no better than what the training has come to.
    if _score_is_finite(trainer):
        yield from (*newest, folder / LAST)


def _score_is_finite(trainer: Any) -> bool:
    """Whether no score by which a checkpoint would be judged is NaN or infinite at the end."""
    names = {"val_loss", *(getattr(each, "monitor", None) for each in trainer.checkpoint_callbacks)}
    found = (trainer.callback_metrics.get(name) for name in names if name)
    return all(math.isfinite(float(score)) for score in found if score is not None)
