"""What the child of an attempt calls, by the device that its plan names: one table of ways."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from workers.contract import Task
from workers.cuda.environment import cuda_environment
from workers.host import CPU, CUDA, SIMULATOR
from workers.operations import OPERATIONS

ON_GPU = "workers.cuda.job:run"


@dataclass(frozen=True)
class Call:
    """A call for the nursery of `device`; with `fresh`, in an interpreter of its own."""

    device: str
    function: str
    arguments: list[Any]
    fresh: Mapping[str, str] | None = None


@contextmanager
def call_of(task: Task) -> Iterator[Call]:
    """The call of an attempt, valid within the context: what it leaves in its temporary folder goes afterwards."""
    run, told = OPERATIONS[task.kind].run, task.model_dump(mode="json")
    device = device_of(task)
    if device == CPU:
        yield Call(CPU, run, [told])
        return
    with TemporaryDirectory(dir=task.folder, prefix="scratch-", ignore_cleanup_errors=True) as scratch:
        fresh = cuda_environment(task.devices, scratch) if device == CUDA else None
        yield Call(device, ON_GPU, [run, scratch, told], fresh)


def device_of(task: Task) -> str:
    """A key of `workers.host`: a plan says `cpu`, `cuda-simulator`, or `cuda` with the indices it knows."""
    device = str(task.plan["device"])
    return device if device in (CPU, SIMULATOR) else CUDA
