"""A node's work on its way to a worker that may not have the server's storage as a folder: its paths, and the files behind them."""

from collections.abc import Callable
from typing import Any, Final

from workers.contract import TrainingParams
from workers.storage.base import Desk
from workers.training.failures_named import NeedsSharedStorage
from workers.training.node_messages import NodeWork, RankWork
from workers.training.rules import Resolved, with_replaced

SCATTERING: Final = ("deepspeed", "modelparallel")
"""How the names of strategies begin whose checkpoints are written by all ranks."""
Paths = Callable[[str], str]
WRITTEN: Final = ("folder", "stop_file", "resumes_in")
READ: Final = ("checkpoint", "metrics_before", "source")
"""Fields of a rank's spec that are paths: of what is written, or read by rank 0 alone, and of what every rank reads."""


def with_server_paths(work: NodeWork, desk: Desk) -> NodeWork:
    """The same work, its paths those of the server's."""
    return _told(work, desk.there, desk.there)


def with_own_files(work: NodeWork, desk: Desk) -> NodeWork:
    """The same work, its paths those of this machine, with what it reads there. Raises InvalidInput, StorageLost, Interrupted."""
    return work if desk.shared else _told(work, desk.here, desk.folder)


def refuse_scattered(params: TrainingParams, resolved: Resolved) -> None:
    """Checkpoints that each rank writes a part of are whole in one folder only. Raises NeedsSharedStorage."""
    strategy = (params.config.get(params.mode) or {}).get("strategy")
    arguments = (strategy.get("init_args") or {}) if isinstance(strategy, dict) else {}
    name = resolved.strategy.lower().replace("_", "")
    if name.startswith(SCATTERING) or arguments.get("state_dict_type") == "sharded":
        raise NeedsSharedStorage(
            f"{resolved.strategy} writes a part of each checkpoint on every node, and not all of the job's workers have the server's "
            "storage as a folder. Mount it at the same path on all of them, or choose a strategy that saves from rank 0, as ddp."
        )


def _told(work: NodeWork, written: Paths, read: Paths) -> NodeWork:
    inputs = {pointer: _each(paths, read) for pointer, paths in work.inputs.items()}

    def one(rank: RankWork) -> RankWork:
        spec = dict(rank.spec)
        for names, place in ((WRITTEN, written), (READ, read)):
            spec |= {name: place(spec[name]) for name in names if spec.get(name) is not None}
        spec["params"] = {**spec["params"], "config": with_replaced(spec["params"]["config"], inputs)}
        return rank.model_copy(update={"log": written(rank.log), "spec": spec})

    return work.model_copy(update={"inputs": inputs, "ranks": [one(rank) for rank in work.ranks]})


def _each(paths: Any, place: Paths) -> Any:
    return [place(path) for path in paths] if isinstance(paths, list) else place(paths)
