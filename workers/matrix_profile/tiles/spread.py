"""Tiles on the workers of a cluster: handed over by a job's child, computed in a thread of whichever worker has room."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import numpy as np

from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.hands import Arriving
from workers.matrix_profile.tiles.tile import Found, Tile, Work
from workers.spread.client import Hatch, the_door
from workers.spread.parcel import Parcel

COMPUTE: Final = "workers.matrix_profile.tiles.spread:compute_tile"


class SpreadHands:
    """The `Hands` of a job whose child was born with a door to a cluster."""

    def __init__(self) -> None:
        self._numbers = count()

    def each(self, tiles: Sequence[Tile], work: Callable[[Tile], Work]) -> Arriving:
        """See `workers.matrix_profile.tiles.hands.Hands`. One tile more is handed over than the cluster has room for."""
        waiting, out, hatch = deque(tiles), dict[int, Tile](), Hatch(the_door())
        hatch.open()
        while waiting or out:
            while waiting and len(out) <= hatch.slots:
                number, tile = next(self._numbers), waiting.popleft()
                hatch.hand_over(number, COMPUTE, Parcel.of(work(tile)), in_thread=True)
                out[number] = tile
            if taken := hatch.take():
                number, found = taken
                yield out.pop(number), found.open()
        hatch.close()


def compute_tile(work: Work, stop_with: Callable[[Callable[[], None]], None]) -> Found | None:
    """On the worker: compute one tile, or give it up when told to."""
    stop = np.zeros(1, dtype=np.bool_)
    stop_with(lambda: stop.fill(True))
    return compute(work, stop)
