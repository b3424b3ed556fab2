"""The p-norm between windows, pair by pair."""

from functools import reduce
from typing import Final

import numpy as np

from workers.matrix_profile.kernel import norms
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.windows import Windows, blocks

SMALL_POWERS: Final = (2.0, 3.0, 4.0, 5.0, 6.0)
"""Powers taken as products, which is several times faster."""


class Norms:
    """The p-norm of the difference of two windows."""

    def __init__(self, a: Windows, b: Windows, p: float) -> None:
        self.a, self.b, self.p = a, b, p
        self.seconds_per_pair = 2e-8 + (1.5e-9 if p in (1.0, 2.0, 3.0) else 3e-9 if p in SMALL_POWERS else 1.4e-8) * a.m
        self.unit = 0.0

    def transposed(self) -> "Norms":
        return Norms(self.b, self.a, self.p)

    def pairs(self, i: Ints, j: Ints) -> Floats:
        found = np.empty(len(i))
        for part in blocks(len(i), self.a.m):
            found[part] = self._length(self.a.rows(i[part]) - self.b.rows(j[part]))
        found[~(self.a.whole[i] & self.b.whole[j])] = np.inf
        return found

    def rows(self, i: Ints) -> Floats:
        found = np.empty((len(i), len(self.b)))
        norms(np.ascontiguousarray(self.a.rows(i)), self.b.values, self.p, found)
        found[~self.a.whole[i]] = np.inf
        found[:, ~self.b.whole] = np.inf
        return found

    def precisely(self, i: int, j: int) -> float:
        x, y = (w.values[n : n + w.m].astype(np.longdouble) for w, n in ((self.a, i), (self.b, j)))
        size = np.abs(x - y)
        largest = size.max()
        return float(largest * ((size / largest) ** self.p).sum() ** (1 / np.longdouble(self.p))) if largest else 0.0

    def farthest(self) -> float:
        """No two windows are farther apart than this: each is at most so far from the middle of all values."""
        everything = np.concatenate([self.a.values, self.b.values])
        middle = everything.min() / 2 + everything.max() / 2
        reach = (
            max(float(self._length(each.rows(part) - middle).max()) for part in blocks(len(each), each.m))
            for each in (self.a, self.b)
        )
        return sum(reach)

    def _length(self, difference: Floats) -> Floats:
        """p-norm of each row, scaled by its largest so that no power over- or underflows."""
        size = np.abs(difference)
        if self.p == 1.0:
            return np.asarray(size.sum(axis=1))
        largest = size.max(axis=1)
        size /= np.where(largest > 0, largest, 1.0)[:, None]
        small = self.p in SMALL_POWERS
        powers = reduce(np.multiply, [size] * int(self.p)) if small else np.power(size, self.p)
        return np.asarray(largest * powers.sum(axis=1) ** (1.0 / self.p))
