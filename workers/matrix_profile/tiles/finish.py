"""From the best similarities of a join to its profile: constant windows find their neighbours, distances are exact."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from workers.matrix_profile.profile import Floats, Ints, Profile, exclusion_zone
from workers.matrix_profile.tiles.best import Best, Nearest
from workers.matrix_profile.tiles.pairs import Pairs

HALF: Final = 0.5
"""A constant window and another are sqrt(m) apart: as if their correlation were this."""
CLOSE: Final = 1e-9
"""Correlations no further apart may be the other way round."""
CLOSE_SHARE: Final = 1e-3
"""The same for squared distances, relative to themselves."""


@dataclass(frozen=True)
class Reach:
    """Which windows may be a row's neighbours: [start, stop) for each row, int64 (l,) both."""

    start: Ints
    stop: Ints

    @classmethod
    def after(cls, windows: int, m: int) -> "Reach":
        rows = np.arange(windows)
        return cls(np.minimum(rows + exclusion_zone(m) + 1, windows), np.full(windows, windows))

    @classmethod
    def before(cls, windows: int, m: int) -> "Reach":
        rows = np.arange(windows)
        return cls(np.zeros(windows, dtype=np.int64), np.maximum(rows - exclusion_zone(m), 0))

    @classmethod
    def everywhere(cls, rows: int, columns: int) -> "Reach":
        return cls(np.zeros(rows, dtype=np.int64), np.full(rows, columns))

    def first_of(self, these: Ints, rows: Ints) -> Ints:
        """For each of `rows` the first of `these` (ascending) within its reach; -1 where there is none."""
        at = np.searchsorted(these, self.start[rows])
        found = np.append(these, self.stop.max(initial=0))[at]
        return np.where(found < self.stop[rows], found, -1)


def finish(best: Best, pairs: Pairs) -> tuple[Profile, Profile | None]:
    """The profile of `a`, and in an AB-join, where it was asked for, that of `b` in `a`, k=1, in the units of the series as they are here.

    Each distance is measured from the two windows it is between. Of equally near neighbours before and after, the one
    before is named.
    """
    l_a, l_b, m = len(pairs.a), len(pairs.b), pairs.a.m
    if best.problem.self_join:
        right = settled(best.rows, pairs, Reach.after(l_a, m))
        left = settled(best.columns, pairs, Reach.before(l_a, m))
        return _nearer(pairs, left, right), None
    rows = settled(best.rows, pairs, Reach.everywhere(l_a, l_b))
    if not best.problem.both:
        return _alone(pairs, rows.neighbors), None
    columns = settled(best.columns, pairs.transposed(), Reach.everywhere(l_b, l_a))
    return _alone(pairs, rows.neighbors), _alone(pairs.transposed(), columns.neighbors)


def settled(known: Nearest, pairs: Pairs, reach: Reach) -> Nearest:
    """The nearest of one role, constant windows among them.

    Two constant windows are 0 apart, so one that reaches another is done; sqrt(m) from all others, which is nearer than
    a neighbour with a correlation below one half.
    """
    done = Nearest(known.similarity.copy(), known.neighbors.copy())
    if not (pairs.a.constant.any() or pairs.b.constant.any()):
        return done
    flat, lively = np.flatnonzero(pairs.b.constant), np.flatnonzero(pairs.b.whole & ~pairs.b.constant)
    constant = np.flatnonzero(pairs.a.constant)
    for these, similarity in ((lively, HALF), (flat, 1.0)):
        _put(done, constant, reach.first_of(these, constant), similarity)
    far = np.flatnonzero(pairs.a.whole & ~pairs.a.constant & (known.similarity < HALF))
    _put(done, far, reach.first_of(flat, far), HALF)
    return done


def _put(done: Nearest, rows: Ints, neighbors: Ints, similarity: float) -> None:
    there = neighbors >= 0
    done.similarity[rows[there]], done.neighbors[rows[there]] = similarity, neighbors[there]


def _nearer(pairs: Pairs, before: Nearest, after: Nearest) -> Profile:
    """A self-join's profile from the nearest before and the nearest after; both are measured where it is a near thing."""
    left, right = before.neighbors, after.neighbors
    least = -np.finfo(np.float64).max
    earlier, later = (np.maximum(each.similarity, least) for each in (before, after))
    chosen = (later > earlier) & (right >= 0) | (left < 0)
    indices, others = np.where(chosen, right, left), np.where(chosen, left, right)
    distances = _measured(pairs, np.arange(len(left)), indices)
    margin = CLOSE if pairs.normalize else CLOSE_SHARE * np.abs(earlier)
    near = np.flatnonzero((np.abs(earlier - later) <= margin) & (others >= 0))
    apart, other = pairs.distances(near, others[near]), others[near]
    better = (apart < distances[near]) | ((apart == distances[near]) & (other < indices[near]))
    distances[near[better]], indices[near[better]] = apart[better], other[better]
    return Profile(distances[:, None], indices[:, None], left, right)


def _alone(pairs: Pairs, neighbors: Ints) -> Profile:
    distances = _measured(pairs, np.arange(len(neighbors)), neighbors)
    nowhere = np.full(len(neighbors), -1, dtype=np.int64)
    return Profile(distances[:, None], neighbors[:, None], nowhere, nowhere.copy())


def _measured(pairs: Pairs, rows: Ints, neighbors: Ints) -> Floats:
    """Distances (l,); a neighbour that cannot be one, since a window is not whole, is taken out of `neighbors`."""
    distances = pairs.distances(rows, neighbors)
    neighbors[~np.isfinite(distances)] = -1
    return distances
