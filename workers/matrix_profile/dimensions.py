"""The distance between windows of several series at once: in each dimension as defined, then the mean of the best."""

from dataclasses import dataclass

import numpy as np

from workers.matrix_profile.definition import Measure
from workers.matrix_profile.kernel import best_means
from workers.matrix_profile.profile import Floats, Ints, exclusion_zone

CANDIDATES = 3
"""Windows whose distances are taken exactly before the nearest is chosen, for each number of dimensions."""


@dataclass
class MultiProfile:
    """Row q has each window's nearest neighbour over its best q+1 dimensions.

    distances: float64 (d, l), inf where there is no neighbour.  indices: int64 (d, l), -1 there.
    """

    distances: Floats
    indices: Ints


@dataclass(frozen=True)
class Dimensions:
    """d dimensions with l windows each.  include: int64, dimensions that come first, in this order.
    discords: the rest follow with the largest distance first, instead of the smallest.

    Each number of dimensions has the mean of the distances that come first (Yeh et al., ICDM 2017; STUMPY's reading).
    """

    measures: list[Measure]
    include: Ints
    discords: bool

    @property
    def windows(self) -> int:
        return len(self.measures[0].a)

    @property
    def unit(self) -> float:
        return self.measures[0].unit

    @property
    def seconds_per_row(self) -> float:
        each = sum(measure.seconds_per_pair + 3e-8 for measure in self.measures)  # the latter for sorting and adding up
        return 4e-4 + each * self.windows

    def means(self, apart: Floats) -> Floats:
        """Distances (d, r) in each dimension as distances (d, r) over the best 1 … d dimensions."""
        found: Floats = np.concatenate([apart[self.include], np.delete(apart, self.include, axis=0)])
        best_means(found, len(self.include), self.discords)
        return found

    def pairs(self, i: Ints, j: Ints) -> Floats:
        """Windows i to windows j, one by one: (d, r)."""
        return self.means(np.stack([each.pairs(i, j) for each in self.measures]))

    def precisely(self, i: int, j: int) -> Floats:
        """One pair by another route: (d,)."""
        apart = [each.precisely(i, j) if each.a.whole[i] and each.b.whole[j] else np.inf for each in self.measures]
        return self.means(np.array(apart)[:, None])[:, 0]

    def rows(self, i: Ints) -> Floats:
        """Windows i to all windows: (r, d, l), inf for trivial pairs; near zero with the error of a correlation."""
        apart = np.stack([each.rows(i) for each in self.measures])
        count, rows, windows = apart.shape
        found = self.means(apart.reshape(count, rows * windows)).reshape(count, rows, windows).transpose(1, 0, 2)
        zone = exclusion_zone(self.measures[0].a.m)
        for number, row in enumerate(i):
            found[number, :, max(0, row - zone) : row + zone + 1] = np.inf
        return found

    def nearest(self, i: Ints, rows: Floats) -> tuple[Floats, Ints]:
        """The nearest neighbours of windows i, given their rows (r, d, l): exact distances (d, r) and indices (d, r)."""
        wanted = min(CANDIDATES, rows.shape[2])
        candidates = np.argpartition(rows, wanted - 1, axis=2)[:, :, :wanted].astype(np.int64)
        candidates = np.sort(candidates.reshape(len(i), -1), axis=1)  # (r, c), of all numbers of dimensions together
        exact = self.pairs(np.repeat(i, candidates.shape[1]), candidates.ravel())
        exact = exact.reshape(-1, *candidates.shape).transpose(1, 0, 2)
        exact[~np.isfinite(np.take_along_axis(rows, candidates[:, None, :], axis=2))] = np.inf
        best = exact.argmin(axis=2)
        distances = np.take_along_axis(exact, best[:, :, None], axis=2)[:, :, 0]
        indices = np.where(np.isfinite(distances), np.take_along_axis(candidates, best, axis=1), -1)
        return distances.T, indices.T

    def first(self, i: int, j: int) -> list[int]:
        """The dimensions in the order in which this pair takes them."""
        apart = np.array([float(each.pairs(np.array([i]), np.array([j]))[0]) for each in self.measures])
        rest = np.setdiff1d(np.arange(len(apart)), self.include)
        order = np.argsort(-apart[rest] if self.discords else apart[rest], kind="stable")
        return [int(each) for each in (*self.include, *rest[order])]
