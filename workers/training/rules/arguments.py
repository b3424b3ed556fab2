"""What Trainer and Fabric are built with, once it is decided."""

from typing import Any

from workers.training.rules.precisions import PRECISIONS
from workers.training.rules.strategies import SINGLE, STRATEGIES
from workers.training.rules.words import AUTO, Resolved


def arguments_of(resolved: Resolved) -> dict[str, Any]:
    """Keyword arguments of Trainer or Fabric. A strategy or precision is not among them where the configuration gives an object."""
    arguments: dict[str, Any] = {
        "accelerator": resolved.accelerator,
        "devices": resolved.devices,
        "num_nodes": resolved.num_nodes,
    }
    if resolved.strategy in STRATEGIES:
        # By its name, `single_device` is the CPU also where CUDA was asked for.
        arguments["strategy"] = AUTO if resolved.strategy == SINGLE else resolved.strategy
    if resolved.precision in PRECISIONS:
        arguments["precision"] = resolved.precision
    return arguments
