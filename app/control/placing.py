"""Which worker gets the next job. Pure.

A job takes all computing threads of one worker, its home; one on CUDA takes devices of it as well; a training job of several nodes
takes a gang: as many workers of one engine, all at once or none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from app.control.demand import ANYWHERE, Demand
from app.control.fitting import Candidate, obstacle, unfit, verdict
from app.control.sharing import Offer, together

__all__ = [
    "Candidate",
    "Choice",
    "Share",
    "after",
    "choose",
    "devices_of",
    "next_of",
    "obstacle",
    "unfit",
    "verdict",
    "were_all_free",
]

DEVICE = "GPU:"
"""A lease of one CUDA device is named so, with its index."""
T = TypeVar("T")


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
    """The workers for a job, those that suit it best. None where there is no room.

    One that asks for no GPU leaves the workers with GPUs alone while others are free, and takes those with most threads; one that does
    takes the workers with the fewest, so that the larger ones are there for who needs more.
    """
    groups = [[c for c in candidates if c.engine == engine] for engine in _engines(candidates)]
    rooms = [
        [c for c in group if obstacle(demand, c) is None] for group in (groups if demand.nodes > 1 else [candidates])
    ]
    tagged = {candidate.worker_id for candidate in candidates if candidate.devices}
    choices = [choice for room in rooms if (choice := _of(demand, sorted(room, key=partial(_suits, demand))))]
    return min(choices, key=lambda each: _tagged(demand, each, tagged), default=None)


def _suits(demand: Demand, candidate: Candidate) -> tuple[bool, int, int, int]:
    """The least suits best."""
    spared = not demand.devices and bool(candidate.devices)
    devices = len(candidate.free_devices) if demand.devices else 0
    return spared, devices, -candidate.threads, -candidate.free.get("CPU", 0)


def _tagged(demand: Demand, choice: Choice, tagged: Collection[str]) -> int:
    """How many workers with GPUs a job would take that asks for none."""
    return 0 if demand.devices else sum(share.worker_id in tagged for share in choice.shares)


def _engines(candidates: Iterable[Candidate]) -> list[str]:
    return list(dict.fromkeys(candidate.engine for candidate in candidates))


def _of(demand: Demand, room: Sequence[Candidate]) -> Choice | None:
    """What a job takes of workers that each have room, the first ones before others."""
    if len(room) < demand.nodes:
        return None
    if demand.place == ANYWHERE:
        return Choice((Share(room[0].worker_id, {}),))
    if not demand.devices:
        return Choice(tuple(_share(candidate, ()) for candidate in room[: demand.nodes]))
    given = together(demand.nodes, [_offer(demand.devices, candidate) for candidate in room])
    return None if given is None else Choice(tuple(_share(room[place], indices) for place, indices in given.items()))


def _share(candidate: Candidate, indices: Iterable[int]) -> Share:
    return Share(candidate.worker_id, {"CPU": candidate.threads, **{f"{DEVICE}{index}": 1 for index in indices}})


def _offer(devices: int | tuple[int, ...], candidate: Candidate) -> Offer:
    free = {index: candidate.devices[index] for index in sorted(candidate.free_devices)}
    if isinstance(devices, tuple):
        return Offer({index: free[index] for index in devices}, len(devices))
    return Offer(free, devices)


def were_all_free(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same workers with nothing leased of any."""
    return [
        replace(
            candidate,
            free={**candidate.free, "CPU": max(candidate.threads, candidate.free.get("CPU", 0))},
            free_devices=frozenset(candidate.devices),
        )
        for candidate in candidates
    ]


def next_of(heads: Mapping[Demand, T], candidates: Sequence[Candidate]) -> tuple[Demand, Choice] | None:
    """Of the first jobs that wait with each demand, in the order of their places `T`, the one to place now, and where.

    A job that no worker has room for is passed by. But a gang that is its turn keeps the workers that are free for it, else it would
    wait for ever behind small jobs that never leave all of them free at once.
    """
    left = list(candidates)
    for demand in sorted(heads, key=lambda each: heads[each]):  # type: ignore[arg-type, return-value]
        if choice := choose(demand, left):
            return demand, choice
        left = without_kept(demand, left)
    return None


def without_kept(demand: Demand, candidates: Sequence[Candidate]) -> list[Candidate]:
    """What is for others while a gang waits: not the workers and devices it will take, those first that are free already.

    A gang that could not begin even if all were free keeps nothing.
    """

    def near(candidate: Candidate) -> tuple[bool, bool, bool, tuple[bool, int, int, int]]:
        """The least is the nearest to be had. What is kept stays free, so that from round to round it only becomes more."""
        now = as_they_are[candidate.worker_id]
        busy = now.free.get("CPU", 0) < now.threads
        suits = _suits(demand, candidate)
        return suits[0], obstacle(demand, now) is not None, busy, suits

    as_they_are = {candidate.worker_id: candidate for candidate in candidates}
    for engine in _engines(candidates) if demand.nodes > 1 else []:
        able = [each for each in candidates if each.engine == engine and unfit(demand, each) is None]
        if choice := _of(demand, sorted(were_all_free(able), key=near)):
            return after(choice, candidates)
    return list(candidates)


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
