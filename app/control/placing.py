"""Which worker gets the next job. Pure.

A job takes all computing threads of one worker, its home; one on CUDA takes devices of it as well. What a job demands of its home is
a short text beside its plan (`Job.demand`), so that a queue of ten thousand is looked through by an index and never read whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

ANYWHERE = "anywhere"
SIMULATOR = "cuda-simulator"
DEVICE = "GPU:"
"""A lease of one CUDA device is named so, with its index."""


@dataclass(frozen=True)
class Demand:
    """What a job asks of its home.

    place: `anywhere` (a probe job: any worker, and nothing of it), `cpu` (any worker), `dask` or `ray` (a worker of that engine),
    `cuda` (a worker that executed a GPU function), `cuda-simulator` (one that ran it on Numba's simulator).
    """

    place: str
    devices: int | tuple[int, ...] = 0
    """With `cuda`: how many devices, or which indices."""

    @classmethod
    def of(cls, kind: str, plan: Mapping[str, Any]) -> "Demand":
        """Of a job, by its plan. `devices: auto`, or none named, is one device: STUMPY's own default, and the others stay free."""
        if kind == "probe":
            return cls(ANYWHERE)
        if plan.get("device") == SIMULATOR:
            return cls(SIMULATOR)
        backend = str(plan.get("backend", "cpu"))
        if backend != "cuda":
            return cls(backend)
        match plan.get("devices"):
            case int() as count:
                return cls(backend, count)
            case [*indices]:
                return cls(backend, tuple(sorted({int(index) for index in indices})))
        return cls(backend, 1)

    @classmethod
    def parse(cls, text: str) -> "Demand":
        """The inverse of `str`."""
        place, _, devices = text.partition(" ")
        if devices.startswith("#"):
            return cls(place, tuple(int(index) for index in devices[1:].split(",")))
        return cls(place, int(devices or 0))

    @property
    def spreads(self) -> bool:
        """Whether its pieces run on all workers of its home's engine."""
        return self.place in ("dask", "ray")

    def __str__(self) -> str:
        if isinstance(self.devices, tuple):
            return f"{self.place} #{','.join(map(str, self.devices))}"
        return f"{self.place} {self.devices}" if self.devices else self.place


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


@dataclass(frozen=True)
class Choice:
    worker_id: str
    needs: Mapping[str, int]
    """What to lease: `CPU`, and `GPU:<index>` for each device."""


def choose(demand: Demand, candidates: Sequence[Candidate]) -> Choice | None:
    """The worker for a job: one without a GPU where none is asked for, then the one with most threads. None where none has room."""
    room = [candidate for candidate in candidates if obstacle(demand, candidate) is None]
    if not room:
        return None
    best = max(room, key=lambda c: (bool(demand.devices) or not c.devices, c.threads, c.free.get("CPU", 0)))
    if demand.place == ANYWHERE:
        return Choice(best.worker_id, {})
    devices = demand.devices
    chosen = devices if isinstance(devices, tuple) else sorted(best.free_devices)[:devices]
    return Choice(best.worker_id, {"CPU": best.threads, **{f"{DEVICE}{index}": 1 for index in chosen}})


def after(choice: Choice, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The workers once a choice is leased: what it takes of its worker is taken, and its devices are for everyone."""
    chosen = next(candidate for candidate in candidates if candidate.worker_id == choice.worker_id)
    taken = {chosen.devices[index] for index in devices_of(choice.needs)}

    def less(candidate: Candidate) -> Candidate:
        still_free = frozenset(index for index in candidate.free_devices if candidate.devices[index] not in taken)
        used = choice.needs.get("CPU", 0) if candidate is chosen else 0
        free = {**candidate.free, "CPU": candidate.free.get("CPU", 0) - used}
        if candidate.devices:
            free["GPU"] = len(still_free)
        return replace(candidate, free=free, free_devices=still_free)

    return [less(candidate) for candidate in candidates]


def devices_of(leases: Iterable[str]) -> list[int]:
    """The CUDA indices among leased resources."""
    return sorted(int(resource.removeprefix(DEVICE)) for resource in leases if resource.startswith(DEVICE))


def obstacle(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker cannot take the job now, as one clause; None where it can."""
    return unfit(demand, candidate) or _taken(demand, candidate)


def unfit(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker could not take the job even if it were free."""
    place, devices = demand.place, demand.devices
    if demand.spreads and candidate.engine != place:
        return f"is on the {candidate.engine} cluster, and the job runs on {place}"
    if place == SIMULATOR and candidate.cuda != "simulated":
        return "does not run Numba's CUDA simulator"
    if place != "cuda":
        return None
    if not candidate.devices:
        return "has no GPU"
    if candidate.cuda != "executed":
        return f"has a GPU, but its cuda probe proved no more than {candidate.cuda!r}"
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
