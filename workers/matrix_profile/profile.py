"""A matrix profile as plain arrays, whoever computed it."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass
class Profile:
    """Each window's k nearest neighbours, nearest first.

    distances: float64 (l, k), inf where there is no neighbour.  indices: int64 (l, k), -1 there.
    left, right: int64 (l,), the nearest neighbour before and after; -1 where there is none and in AB-joins.
    """

    distances: Floats
    indices: Ints
    left: Ints
    right: Ints

    @property
    def windows(self) -> int:
        return len(self.distances)

    @property
    def k(self) -> int:
        return int(self.distances.shape[1])


def exclusion_zone(m: int) -> int:
    """Neighbours at most this many rows away are trivial in a self-join: ⌈m/4⌉ (Matrix Profile I, ICDM 2016)."""
    return -(-m // 4)
