"""How long a job will take and how much memory it needs, from speeds measured on the workers; and how wrong that was. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.jobs.evidence import CLUSTERS, WorkerFacts, proved
from workers.operations import Computation
from workers.sizes import Lengths

GPU_SPEED: Final = "gpu_"
"""What stands before a kernel's name in a worker's `speed` where a GPU computed it."""


def seconds_on(
    backend: str, computation: Computation, params: Any, lengths: Lengths, workers: Sequence[WorkerFacts]
) -> float | None:
    """Seconds of computing; None where no worker that may do it was measured.

    One worker: the slowest it may land on. A cluster: all its proven workers together.
    """
    kernel = f"{computation.kernels.pick(params.normalize)}_cells_per_second"
    if backend == "cuda":
        kernel = GPU_SPEED + kernel
    able = workers if backend == "cpu" else proved(backend, workers)
    speeds = [worker.speeds[kernel] for worker in able if worker.speeds.get(kernel, 0) > 0]
    if not speeds:
        return None
    return computation.cells(params, lengths) / (sum(speeds) if backend in CLUSTERS else min(speeds))


def peak_bytes(computation: Computation, params: Any, lengths: Lengths, workers: Sequence[WorkerFacts]) -> int:
    """Memory of the computing process, on the worker where it takes most."""
    return computation.peak_bytes(params, lengths, most_threads(workers))


def most_threads(workers: Sequence[WorkerFacts]) -> int:
    return max((worker.threads for worker in workers), default=1)


def largest_memory(workers: Sequence[WorkerFacts]) -> int | None:
    """Memory of the largest worker, bytes; None where none is up or none knows."""
    return max((worker.memory_bytes for worker in workers), default=0) or None


def estimate_error(plan: Mapping[str, Any], provenance: Mapping[str, Any] | None) -> dict[str, float] | None:
    """What a plan's estimate of computing came to, once its job succeeded.

    None where there was no estimate, or where the result does not say what computing took.
    """
    estimated = (plan.get("estimate") or {}).get("seconds")
    seconds = (provenance or {}).get("seconds")
    actual = seconds.get("computing") if isinstance(seconds, Mapping) else None
    if not estimated or actual is None:
        return None
    return {
        "estimated_seconds": estimated,
        "actual_seconds": actual,
        "ratio": round(actual / estimated, 4),
    }
