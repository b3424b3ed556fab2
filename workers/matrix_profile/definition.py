"""Distances straight from their definitions, each from its own two windows: nothing runs on from pair to pair."""

import math
from typing import Any, Protocol

import numpy as np

from workers.matrix_profile.kernel import correlations
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.windows import Windows, blocks

FINEST = 1e-100
"""A window whose length, beside the largest value, is below this is taken apart and scaled by itself."""


class Measure(Protocol):
    """A distance between windows of two series (the same one twice in a self-join)."""

    a: Windows
    b: Windows
    seconds_per_pair: float  # of `rows`, roughly
    unit: float  # what an error near zero is relative to: sqrt(m); 0 where distances are exact relative to themselves

    def pairs(self, i: Ints, j: Ints) -> Floats:
        """Window i of `a` to window j of `b`, one by one: float64 (r,), inf where a window is not whole."""

    def rows(self, i: Ints) -> Floats:
        """Windows `i` of `a` to every window of `b`: float64 (r, l_b), inf where a window is not whole."""

    def precisely(self, i: int, j: int) -> float:
        """One pair of whole windows in extended precision, by another route than `pairs`: a check on it."""

    def transposed(self) -> "Measure":
        """The same distance seen from `b`."""


class Shapes:
    """The z-normalised Euclidean distance, sqrt(2m(1-ρ)) = sqrt(m)·|x̂ - ŷ| with x̂, ŷ centred and of length 1.

    Two constant windows are 0 apart, a constant and another sqrt(m). A row comes from correlations, so a distance near
    zero has an error of about 1e-8·sqrt(m) there; a pair is exact to rounding.
    """

    def __init__(self, a: Windows, b: Windows) -> None:
        self.a, self.b = a, b
        self.seconds_per_pair = 1.2e-8 + 1.2e-10 * a.m
        self.unit = math.sqrt(a.m)

    def transposed(self) -> "Shapes":
        return Shapes(self.b, self.a)

    def pairs(self, i: Ints, j: Ints) -> Floats:
        found = np.empty(len(i))
        for part in blocks(len(i), self.a.m):
            difference = self.a.shapes(i[part]) - self.b.shapes(j[part])
            found[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference)) * math.sqrt(self.a.m)
        found[self.a.constant[i] != self.b.constant[j]] = math.sqrt(self.a.m)
        found[~(self.a.whole[i] & self.b.whole[j])] = np.inf
        return found

    def rows(self, i: Ints) -> Floats:
        mine, found = self.a.shapes(i), np.empty((len(i), len(self.b)))
        lengths = self.b.spreads * math.sqrt(self.b.m)
        fine = np.flatnonzero((lengths < FINEST) & self.b.whole & ~self.b.constant)
        correlations(mine, self.b.scaled, self.b.levels, np.maximum(lengths, FINEST), found)
        for part in blocks(len(fine), self.b.m):
            found[:, fine[part]] = mine @ self.b.shapes(fine[part]).T
        np.subtract(1.0, found, out=found)
        np.maximum(found, 0.0, out=found)
        found *= 2.0 * self.a.m
        np.sqrt(found, out=found)
        ours, theirs = self.a.constant[i][:, None], self.b.constant[None, :]
        found[ours & theirs] = 0.0
        found[ours != theirs] = math.sqrt(self.a.m)
        found[~self.a.whole[i]] = np.inf
        found[:, ~self.b.whole] = np.inf
        return found

    def precisely(self, i: int, j: int) -> float:
        if self.a.constant[i] or self.b.constant[j]:
            return 0.0 if self.a.constant[i] and self.b.constant[j] else math.sqrt(self.a.m)
        x, y = (_standardised(w.values[n : n + w.m]) for w, n in ((self.a, i), (self.b, j)))
        return float(np.sqrt(((x - y) ** 2).sum()))


def _standardised(window: Floats) -> Any:
    """A window, not constant, with mean 0 and deviation 1 in extended precision."""
    x = window.astype(np.longdouble)
    x = x - x[0]  # exact for a window that varies by a few ulps of its level
    x = x / np.abs(x).max()
    x = x - x.mean()
    x = x - x.mean()
    return x / np.sqrt((x * x).mean())
