"""The accelerators that Lightning knows by name, one row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workers.training.rules.words import CPU, CUDA


@dataclass(frozen=True)
class Accelerator:
    """One name. Without `runs_as` it cannot be had here, for the reason of `refusal`."""

    runs_as: str | None
    refusal: str | None = None


ONLY_HERE: Final = 'Ask for "cpu", "cuda" or "auto".'

ACCELERATORS: Final[Mapping[str, Accelerator]] = {
    "auto": Accelerator("auto"),
    CPU: Accelerator(CPU),
    CUDA: Accelerator(CUDA),
    "gpu": Accelerator(CUDA),
    "mps": Accelerator(
        None,
        "MPS is the GPU of an Apple machine, where no worker of this service runs and no torch.distributed backend exists.",
    ),
    "tpu": Accelerator(None, "TPUs need torch_xla, which this service's workers do not have."),
    "xla": Accelerator(None, "XLA devices need torch_xla, which this service's workers do not have."),
    "hpu": Accelerator(None, "Lightning 2.6 has no accelerator for HPUs any more."),
}
