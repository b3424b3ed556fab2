"""Which worker gets the next job. Pure.

A job takes all computing threads of one worker, its home; one on CUDA takes devices of it as well; a training job of several nodes
takes a gang: as many workers of one engine, all at once or none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from app.control.demand import ANYWHERE, CLUSTERS, SIMULATOR, TRAINING_CUDA, Demand

DEVICE = "GPU:"
"""A lease of one CUDA device is named so, with its index."""
T = TypeVar("T")


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


@dataclass(frozen=True)
class Share:
    """What an attempt takes of one worker."""

    worker_id: str
    needs: Mapping[str, int]
    """What to lease: `CPU`, and `GPU:<index>` for each device."""


@dataclass(frozen=True)
class Choice:
    """The workers for one attempt, all of one engine; the first is its home."""

    shares: tuple[Share, ...]

    @property
    def worker_id(self) -> str:
        """The home's."""
        return self.shares[0].worker_id

    @property
    def needs(self) -> Mapping[str, int]:
        """What the home gives."""
        return self.shares[0].needs


def choose(demand: Demand, candidates: Sequence[Candidate]) -> Choice | None:
    """The workers for a job: those without a GPU where none is asked for, then those with most threads. None where there is no room."""
    for engine in _engines(candidates) if demand.nodes > 1 else [None]:
        left = [each for each in candidates if engine in (None, each.engine)]
        shares: list[Share] = []
        while len(shares) < demand.nodes and (share := _best(demand, left)):
            shares.append(share)
            left = [each for each in less(share, left) if each.worker_id != share.worker_id]
        if len(shares) == demand.nodes:
            return Choice(tuple(shares))
    return None


def _engines(candidates: Iterable[Candidate]) -> list[str]:
    return list(dict.fromkeys(candidate.engine for candidate in candidates))


def _best(demand: Demand, candidates: Sequence[Candidate]) -> Share | None:
    """What a job, or one node of it, takes of the worker that suits it best."""
    room = [candidate for candidate in candidates if obstacle(demand, candidate) is None]
    if not room:
        return None
    best = max(room, key=lambda c: (bool(demand.devices) or not c.devices, c.threads, c.free.get("CPU", 0)))
    if demand.place == ANYWHERE:
        return Share(best.worker_id, {})
    devices = demand.devices
    chosen = devices if isinstance(devices, tuple) else sorted(best.free_devices)[:devices]
    return Share(best.worker_id, {"CPU": best.threads, **{f"{DEVICE}{index}": 1 for index in chosen}})


def next_of(heads: Mapping[Demand, T], candidates: Sequence[Candidate]) -> tuple[Demand, Choice] | None:
    """Of the first jobs that wait with each demand, in the order of their places `T`, the one to place now, and where.

    A job that no worker has room for is passed by. But a gang that is its turn keeps the workers that are free for it, else it would
    wait for ever behind small jobs that never leave all of them free at once.
    """
    left = list(candidates)
    for demand in sorted(heads, key=lambda each: heads[each]):  # type: ignore[arg-type, return-value]
        if choice := choose(demand, left):
            return demand, choice
        kept = _kept(demand, left)
        left = [candidate for candidate in left if candidate.worker_id not in kept]
    return None


def _kept(demand: Demand, candidates: Sequence[Candidate]) -> set[str]:
    """The free workers that a gang waits with until the others it needs are free as well."""
    for engine in _engines(candidates) if demand.nodes > 1 else []:
        able = [each for each in candidates if each.engine == engine and unfit(demand, each) is None]
        if len(able) >= demand.nodes:
            free = [each.worker_id for each in able if obstacle(demand, each) is None]
            return set(free[: demand.nodes])
    return set()


def after(choice: Choice, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The workers once a choice is leased: what it takes of its workers is taken, and their devices are for everyone."""
    left = list(candidates)
    for share in choice.shares:
        left = less(share, left)
    return left


def less(share: Share, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The workers once one share is leased."""
    chosen = next(candidate for candidate in candidates if candidate.worker_id == share.worker_id)
    taken = {chosen.devices[index] for index in devices_of(share.needs)}

    def one(candidate: Candidate) -> Candidate:
        still_free = frozenset(index for index in candidate.free_devices if candidate.devices[index] not in taken)
        used = share.needs.get("CPU", 0) if candidate is chosen else 0
        free = {**candidate.free, "CPU": candidate.free.get("CPU", 0) - used}
        if candidate.devices:
            free["GPU"] = len(still_free)
        return replace(candidate, free=free, free_devices=still_free)

    return [one(candidate) for candidate in candidates]


def devices_of(leases: Iterable[str]) -> list[int]:
    """The CUDA indices among leased resources."""
    return sorted(int(resource.removeprefix(DEVICE)) for resource in leases if resource.startswith(DEVICE))


def obstacle(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker cannot take the job now, as one clause; None where it can."""
    return unfit(demand, candidate) or _taken(demand, candidate)


def unfit(demand: Demand, candidate: Candidate) -> str | None:
    """Why this worker could not take the job even if it were free."""
    place, devices = demand.place, demand.devices
    engine = place if place in CLUSTERS else demand.engine
    if engine and candidate.engine != engine:
        return f"is on the {candidate.engine} cluster, and the job runs on {engine}"
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
