"""What the rules are asked with, and what they answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from workers.contract import Message

AUTO: Final = "auto"
CPU: Final = "cpu"
CUDA: Final = "cuda"
TRAINER: Final = "trainer"
FABRIC: Final = "fabric"
BOTH: Final = frozenset({TRAINER, FABRIC})

NAMES: Final[Mapping[str, str]] = {TRAINER: "Trainer", FABRIC: "Fabric"}
"""mode → Lightning's own name for it."""


@dataclass(frozen=True)
class Fault:
    """One thing that keeps a configuration from running. `pointer` is a JSON Pointer from the root of the request."""

    pointer: str
    detail: str


class Resolved(Message):
    """What really runs; shown as `resolved` in the plan and in the result."""

    accelerator: Literal["cpu", "cuda"]
    devices: int
    """Processes on each node."""
    num_nodes: int
    strategy: str
    """A name of Lightning's registry, `single_device`, or the name of the class that the configuration gives."""
    precision: str
    """A canonical name, or the name of the precision plugin's class."""
    world_size: int
    device_indices: list[int] | None = None
    """CUDA indices on each node, where the configuration names them."""


@dataclass(frozen=True)
class Machine:
    """What the deployment, or one machine, has, as far as is known."""

    cuda_devices: int = 0
    """Of the largest worker that has shown torch to work on CUDA."""
    cuda_reason: str = "no worker has a CUDA device that torch can use"
    """Why there is none."""
    nodes: Mapping[str, int] | None = None
    """engine → its workers that are up; None where that is not known."""
    packages: Mapping[str, bool] | None = None
    """Whether an optional package is installed on the workers; None, or no entry, where that is not known."""

    def lacks(self, package: str | None) -> bool:
        """Whether `package` is known not to be there."""
        return package is not None and self.packages is not None and not self.packages.get(package, True)


@dataclass(frozen=True)
class Checked:
    """The answer: what is wrong, or what will run."""

    faults: list[Fault]
    warnings: list[str]
    reasons: list[str]
    """How what was left open was decided, in sentences."""
    resolved: Resolved | None
    """None just where there are faults."""
