"""From a configuration to what really runs."""

from typing import Literal

from workers.training.rules.choices import Choices
from workers.training.rules.how import precision_of, strategy_of
from workers.training.rules.strategies import Strategy
from workers.training.rules.where import accelerator_of, devices_on, nodes_of
from workers.training.rules.words import CPU, CUDA, Resolved


def resolve(choices: Choices) -> tuple[Resolved, Strategy]:
    """What really runs, and the strategy's row. Worth something only where the choices have no faults in the end."""
    accelerator = accelerator_of(choices)
    devices, nodes = devices_on(choices, accelerator), nodes_of(choices)
    count = devices.count or 1
    name, row = strategy_of(choices, accelerator, count * nodes)
    kind: Literal["cpu", "cuda"] = CUDA if accelerator == CUDA else CPU
    resolved = Resolved(
        accelerator=kind,
        devices=count,
        num_nodes=nodes,
        strategy=name,
        precision=precision_of(choices, accelerator, row),
        world_size=count * nodes,
        device_indices=devices.indices,
    )
    return resolved, row
