"""CUDA devices for the nodes of a gang, where several workers of one machine may have the same device. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Offer:
    """What a worker could give to one node: `count` of these devices, index → the device's own id."""

    devices: Mapping[int, str]
    count: int


Held = Mapping[str, int]
"""device → which offer gives it."""


def together(nodes: int, offers: Sequence[Offer]) -> dict[int, list[int]] | None:
    """Offers that can be taken up at once, by their place, each with the CUDA indices it gives; None where there are not so many.

    Earlier offers are liked better; but those that share no device come first, for they are in nobody's way.
    """
    owners: dict[str, int] = {}
    for offer in offers:
        for device in offer.devices.values():
            owners[device] = owners.get(device, 0) + 1
    alone = [i for i, offer in enumerate(offers) if all(owners[device] == 1 for device in offer.devices.values())]
    chosen = alone[:nodes]
    entangled = [i for i in range(len(offers)) if i not in set(alone)]
    held = _search(nodes - len(chosen), entangled, offers, {})
    if held is None:
        return None
    free = {place: sorted(offers[place].devices)[: offers[place].count] for place in chosen}
    shared = {
        place: sorted(index for index, device in offers[place].devices.items() if held.get(device) == place)
        for place in sorted(set(held.values()))
    }
    return dict(sorted((free | shared).items()))


def _search(nodes: int, places: Sequence[int], offers: Sequence[Offer], held: Held) -> Held | None:
    """Take up as many more of these offers, each or not, until it works out."""
    if nodes <= 0:
        return held
    in_vain: set[tuple[frozenset[str], int]] = set()
    for i, place in enumerate(places[: max(0, len(places) - nodes + 1)]):
        offer = offers[place]
        like = (frozenset(offer.devices.values()), offer.count)
        if like in in_vain:  # what did not work out with its twin does not with this one
            continue
        more = _with(place, offers, held)
        if more is not None and (found := _search(nodes - 1, places[i + 1 :], offers, more)) is not None:
            return found
        in_vain.add(like)
    return None


def _with(place: int, offers: Sequence[Offer], held: Held) -> Held | None:
    """The same with one more offer taken up; those already in may give other devices instead (an augmenting path for each device)."""
    after = dict(held)

    def give(giver: int, seen: set[str]) -> bool:
        devices = [device for _, device in sorted(offers[giver].devices.items())]
        for device in sorted(devices, key=lambda each: each in after):
            if device in seen or after.get(device) == giver:
                continue
            seen.add(device)
            if device not in after or give(after[device], seen):
                after[device] = giver
                return True
        return False

    return after if all(give(place, set()) for _ in range(offers[place].count)) else None
