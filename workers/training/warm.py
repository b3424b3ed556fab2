"""What the training nursery loads before it forks anything: torch, Lightning, and all of ours that ranks need. It runs no torch op, for
what an op starts, threads above all, does not survive a fork."""

import gc
import importlib
import warnings
from typing import Final

LOADED: Final = (
    "torch",
    "torch.distributed",
    "torch.utils.data",
    "numpy",
    "pyarrow.parquet",
    "jsonargparse",
    "lightning.fabric",
    "lightning.pytorch",
    "lightning.pytorch.cli",
    "lightning.pytorch.callbacks",
    "lightning.pytorch.loggers",
    "lightning.pytorch.strategies",
    "workers.training.check",
    "workers.training.data",
    "workers.training.drive_prepare",
    "workers.training.keeper",
    "workers.training.models",
    "workers.training.parsing",
    "workers.training.rank",
)


def warm() -> None:
    """Load it all, once."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # what libraries say of one another when they are loaded is not for a worker's log
        for name in LOADED:
            importlib.import_module(name)
    # What is loaded now is never collected: a fork that touched it would copy its pages.
    gc.collect()
    gc.freeze()
