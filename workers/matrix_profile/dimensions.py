"""The distance between windows of several series at once: in each dimension as defined, then the mean of the best."""

from dataclasses import dataclass

import numpy as np

from workers.matrix_profile.definition import Measure
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
        each = sum(measure.seconds_per_pair + 5e-8 for measure in self.measures)  # the latter for sorting and adding up
        return 1.5e-3 + each * self.windows

    def means(self, apart: Floats) -> Floats:
        """Distances (d, r) in each dimension as distances (d, r) over the best 1 … d dimensions."""
        rest = np.delete(apart, self.include, axis=0)
        rest.sort(axis=0)
        ordered = np.concatenate([apart[self.include], rest[::-1] if self.discords else rest])
        counted = np.arange(1, len(ordered) + 1)[:, None]
        return np.asarray(np.cumsum(ordered / counted[-1], axis=0) / (counted / counted[-1]))

    def pairs(self, i: Ints, j: Ints) -> Floats:
        """Windows i to windows j, one by one: (d, r)."""
        return self.means(np.stack([each.pairs(i, j) for each in self.measures]))

    def precisely(self, i: int, j: int) -> Floats:
        """One pair by another route: (d,)."""
        apart = [each.precisely(i, j) if each.a.whole[i] and each.b.whole[j] else np.inf for each in self.measures]
        return self.means(np.array(apart)[:, None])[:, 0]

    def row(self, i: int) -> Floats:
        """Window i to all windows: (d, l), inf for trivial pairs; near zero with the error of a correlation."""
        found = self.means(np.stack([each.rows(np.array([i]))[0] for each in self.measures]))
        zone = exclusion_zone(self.measures[0].a.m)
        found[:, max(0, i - zone) : i + zone + 1] = np.inf
        return found

    def nearest(self, i: int, row: Floats) -> tuple[Floats, Ints]:
        """Window i's nearest neighbours, given its row (d, l): exact distances (d,) and indices (d,), the first of equals."""
        wanted = min(CANDIDATES, row.shape[1])
        candidates = np.unique(np.argpartition(row, wanted - 1, axis=1)[:, :wanted]).astype(np.int64)
        exact = self.pairs(np.full(len(candidates), i), candidates)
        exact[~np.isfinite(row[:, candidates])] = np.inf
        best = exact.argmin(axis=1)
        distances = exact[np.arange(len(exact)), best]
        return distances, np.where(np.isfinite(distances), candidates[best], -1)

    def first(self, i: int, j: int) -> list[int]:
        """The dimensions in the order in which this pair takes them."""
        apart = np.array([float(each.pairs(np.array([i]), np.array([j]))[0]) for each in self.measures])
        rest = np.setdiff1d(np.arange(len(apart)), self.include)
        order = np.argsort(-apart[rest] if self.discords else apart[rest], kind="stable")
        return [int(each) for each in (*self.include, *rest[order])]
