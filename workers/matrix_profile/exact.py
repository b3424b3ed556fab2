"""Rows of a profile computed again from the definition, and put in place."""

import numpy as np

from workers.matrix_profile.definition import Measure
from workers.matrix_profile.profile import Floats, Ints, Profile, exclusion_zone

SPARE = 4
"""Candidates beyond k whose distances are taken exactly before the k nearest are chosen."""

ROW_VALUES = 1 << 21
"""Distances held at once: 16 MiB."""


def recompute(profile: Profile, measure: Measure, rows: Ints, *, self_join: bool) -> None:
    """Replace the rows `rows` of `profile` by exact ones."""
    for part in _parts(rows, len(measure.b)):
        distances = _row_distances(measure, part, self_join=self_join)
        profile.distances[part], profile.indices[part] = nearest(distances, part, measure, profile.k)
        if self_join:
            profile.left[part], profile.right[part] = _sides(distances, part)


def neighbours(profile: Profile, measure: Measure, rows: Ints, *, self_join: bool) -> Profile:
    """The same rows as a profile of their own; `profile` only says how many neighbours."""
    fresh = Profile(profile.distances.copy(), profile.indices.copy(), profile.left.copy(), profile.right.copy())
    recompute(fresh, measure, rows, self_join=self_join)
    return Profile(fresh.distances[rows], fresh.indices[rows], fresh.left[rows], fresh.right[rows])


def remeasure(profile: Profile, measure: Measure) -> Floats:
    """Put the exact distance of every pair the profile names in place of the computed one.

    Returns the distances as they were, float64 (l, k), beside the pairs in their new order.
    """
    before = profile.distances.copy()
    for column in range(profile.k):
        found = np.flatnonzero(profile.indices[:, column] >= 0)
        profile.distances[found, column] = measure.pairs(found, profile.indices[found, column])
    profile.indices[~np.isfinite(profile.distances)] = -1
    order = np.argsort(profile.distances, axis=1, kind="stable")
    profile.distances = np.take_along_axis(profile.distances, order, axis=1)
    profile.indices = np.take_along_axis(profile.indices, order, axis=1)
    return np.take_along_axis(before, order, axis=1)


def offer(profile: Profile, measure: Measure, columns: Ints, others: Ints, *, self_join: bool) -> None:
    """Let the windows `columns` of b become neighbours of the rows `others` at their exact distances.

    Their present entries there are dropped first; a row all of whose entries were right ends as it was.
    """
    if not len(others) or not len(columns):
        return
    k, seen, slack = profile.k, measure.transposed(), 1e-6 * np.sqrt(measure.a.m)
    distances, indices = profile.distances[others], profile.indices[others]
    distances[np.isin(indices, columns)] = np.inf
    distances = np.pad(distances, ((0, 0), (0, SPARE)), constant_values=np.inf)
    indices = np.pad(indices, ((0, 0), (0, SPARE)), constant_values=-1)
    sides = {name: distances_to(measure, others, getattr(profile, name)[others]) for name in ("left", "right")}
    for part in _parts(columns, len(measure.a)):
        offered = _row_distances(seen, part, self_join=self_join)[:, others]
        if self_join:
            _offer_sides(profile, offered, part, others, sides)
        nearer = np.flatnonzero(offered.min(axis=0) < distances[:, :k].max(axis=1) + slack)
        both = np.hstack([distances[nearer], offered[:, nearer].T])
        named = np.hstack([indices[nearer], np.broadcast_to(part, (len(nearer), len(part)))])
        order = np.argsort(both, axis=1, kind="stable")[:, : k + SPARE]
        distances[nearer] = np.take_along_axis(both, order, axis=1)
        indices[nearer] = np.take_along_axis(named, order, axis=1)
    profile.distances[others], profile.indices[others] = _refined(distances, indices, others, measure, k)


def nearest(distances: Floats, rows: Ints, measure: Measure, k: int) -> tuple[Floats, Ints]:
    """The k nearest of whole rows of distances (r, l_b): distances (r, k) from the pairs themselves, and indices."""
    wanted = min(k + SPARE, distances.shape[1])
    candidates = np.argpartition(distances, wanted - 1, axis=1)[:, :wanted].astype(np.int64)
    return _refined(np.take_along_axis(distances, candidates, axis=1), candidates, rows, measure, k)


def _refined(rough: Floats, indices: Ints, rows: Ints, measure: Measure, k: int) -> tuple[Floats, Ints]:
    """The k nearest of some candidates by exact distance; ties go to the smaller index."""
    exact = np.full((len(rows), max(k, rough.shape[1])), np.inf)
    numbers = np.full(exact.shape, -1, dtype=np.int64)
    for column in range(rough.shape[1]):
        found = np.flatnonzero(np.isfinite(rough[:, column]))
        exact[found, column] = measure.pairs(rows[found], indices[found, column])
        numbers[found, column] = indices[found, column]
    order = np.lexsort((numbers, exact), axis=1)[:, :k]
    return np.take_along_axis(exact, order, axis=1), np.take_along_axis(numbers, order, axis=1)


def _row_distances(measure: Measure, rows: Ints, *, self_join: bool) -> Floats:
    """Distances (r, l_b) of the windows `rows`, inf for trivial pairs of a self-join."""
    distances = measure.rows(rows)
    if self_join:
        zone = exclusion_zone(measure.a.m)
        for number, row in enumerate(rows):
            distances[number, max(0, row - zone) : row + zone + 1] = np.inf
    return distances


def _sides(distances: Floats, rows: Ints) -> tuple[Ints, Ints]:
    """The nearest window before and after each of `rows`; -1 where there is none."""
    found = np.full((2, len(rows)), -1, dtype=np.int64)
    for number, row in enumerate(rows):
        for side, stretch in enumerate((slice(0, row), slice(row + 1, None))):
            there = distances[number, stretch]
            if there.size and np.isfinite(there.min()):
                found[side, number] = int(there.argmin()) + (stretch.start or 0)
    return found[0], found[1]


def _offer_sides(profile: Profile, offered: Floats, part: Ints, others: Ints, sides: dict[str, Floats]) -> None:
    for name, there in (("left", part[:, None] < others), ("right", part[:, None] > others)):
        allowed = np.where(there, offered, np.inf)
        best = allowed.argmin(axis=0)
        nearer = allowed[best, np.arange(len(others))]
        better = nearer < sides[name]
        sides[name][better] = nearer[better]
        getattr(profile, name)[others[better]] = part[best[better]]


def distances_to(measure: Measure, rows: Ints, indices: Ints) -> Floats:
    """Rows to one window each, exactly: float64 (r,), inf for -1."""
    found = np.full(len(rows), np.inf)
    there = indices >= 0
    found[there] = measure.pairs(rows[there], indices[there])
    return found


def _parts(rows: Ints, width: int) -> list[Ints]:
    """Blocks of rows whose distances fit 16 MiB, at most 256 rows."""
    step = max(1, min(256, ROW_VALUES // max(1, width)))
    return [rows[start : start + step] for start in range(0, len(rows), step)]
