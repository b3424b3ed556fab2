"""Whether a worker can take a job, now or ever, in one clause. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.control.demand import ANYWHERE, CLUSTERS, SIMULATOR, TRAINING_CUDA, Demand


@dataclass(frozen=True)
class Candidate:
    """A worker as placing sees it."""

    worker_id: str
    threads: int
    free: Mapping[str, int]
    """What is not leased: `CPU`, `GPU`."""
    engine: str = "dask"
    cuda: str = "absent"
    """What its cuda probe proved."""
    devices: Mapping[int, str] = field(default_factory=dict)
    """CUDA index → the device's own id. Workers of one machine may share a device."""
    free_devices: frozenset[int] = frozenset()
    training_cuda: str = "absent"
    """What its training probe proved of CUDA."""
    memory_bytes: int = 0
    """Of its machine; 0 where that is not known."""


def obstacle(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker cannot take the job now, as one clause; None where it can."""
    return unfit(demand, candidate) or _taken(demand, candidate)


def unfit(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker could not take the job even if it were free."""
    place, devices = demand.place, demand.devices
    engine = place if place in CLUSTERS else demand.engine
    if engine and candidate.engine != engine:
        return f"is on the {candidate.engine} cluster, and the job runs on {engine}"
    if 0 < candidate.memory_bytes < demand.gib << 30:
        return f"has {candidate.memory_bytes / (1 << 30):.1f} GiB of memory, and the job needs {demand.gib} or more"
    if place == SIMULATOR and candidate.cuda != "simulated":
        return "does not run Numba's CUDA simulator"
    if place not in ("cuda", TRAINING_CUDA):
        return None
    if not candidate.devices:
        return "has no GPU"
    probe, proved = ("cuda", candidate.cuda) if place == "cuda" else ("training", candidate.training_cuda)
    if proved != "executed":
        return f"has a GPU, but its {probe} probe proved no more than {proved!r}"
    if isinstance(devices, tuple):
        missing = [index for index in devices if index not in candidate.devices]
        return f"has no CUDA device {_listed(missing)}" if missing else None
    return (
        f"has {len(candidate.devices)} GPU(s), and the job asks for {devices}"
        if devices > len(candidate.devices)
        else None
    )


def _taken(demand: Demand, candidate: Candidate) -> str | None:
    free, devices = candidate.free.get("CPU", 0), demand.devices
    if demand.place == ANYWHERE:
        return None
    if free < candidate.threads:
        return f"is taken: {free} of {candidate.threads} computing threads are free, and a job needs them all"
    if isinstance(devices, tuple):
        busy = [index for index in devices if index not in candidate.free_devices]
        return f"is taken: its CUDA device {_listed(busy)} is in use" if busy else None
    if devices > len(candidate.free_devices):
        return f"is taken: {len(candidate.free_devices)} of {len(candidate.devices)} GPU(s) are free, and the job needs {devices}"
    return None


def verdict(demand: Demand, candidate: Candidate) -> str:
    """One clause on why this worker can or cannot take the job now."""
    why_not = obstacle(demand, candidate)
    if why_not is not None:
        return why_not
    if demand.place == ANYWHERE:
        return "can take it: the job needs no room"
    gpus = f" and {len(candidate.free_devices)} GPU(s)" if demand.devices else ""
    return f"has room: all {candidate.threads} computing threads{gpus} are free"


def _listed(indices: Sequence[int]) -> str:
    return ", ".join(map(str, indices))
