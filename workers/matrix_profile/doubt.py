"""Which rows of a profile the rounding of running sums may have spoilt."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from workers.matrix_profile.definition import Measure
from workers.matrix_profile.exact import distances_to
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.profile import Bools, Floats, Ints, Profile, exclusion_zone

PAIR_TOLERANCE: Final = 1e-6
"""How far, relative to sqrt(m) or to itself, a distance may be off before its row is doubted."""

CORRELATION_TOLERANCE: Final = 1e-9
"""The error of a correlation that still passes: near zero it is a distance of 4.5e-5·sqrt(m), as STUMPY has it."""

EPS: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Doubts:
    """rows: int64, to be computed again, most doubtful first; the first `wrong` of them are known to be wrong.
    quiet: bool (l_b,), windows of b too fine beside the liveliest for a correlation from running sums."""

    rows: Ints
    wrong: int
    quiet: Bools


def doubts(profile: Profile, measure: Measure, before: Floats, *, self_join: bool) -> Doubts:
    """Pairs that were not as far apart as computed, rows that lack a neighbour they should have, and rows finer than
    the running sums could resolve.

    before: float64 (l, k), the distances as computed, beside the remeasured ones in `profile`.
    """
    wrong = np.any(_off(profile, measure, before), axis=1) | _lacking(profile, measure, self_join=self_join)
    sides = np.stack([profile.left, profile.right])
    if isinstance(measure, Norms):
        bound, theirs = _unresolved(profile, measure, before), np.zeros(len(measure.b), dtype=np.bool_)
        beside = np.any(_within(profile, measure, sides, bound), axis=0)
        fine = beside | (profile.distances[:, -1] < bound)
    else:
        mine, theirs = _quiet(profile, measure, before)
        fine = mine | np.any((sides >= 0) & theirs[sides], axis=0) | _close(profile, measure, before, mine, theirs)
        beside = (wrong | fine) & self_join
    chosen = (wrong | fine) & measure.a.whole
    chosen &= beside | (profile.distances[:, -1] > 8 * EPS * measure.unit)  # nothing is nearer than equal
    rows = np.flatnonzero(chosen)
    order = np.lexsort((profile.distances[rows, 0], ~wrong[rows]))
    return Doubts(rows[order], int(np.count_nonzero(wrong[rows])), theirs)


def _quiet(profile: Profile, measure: Measure, before: Floats) -> tuple[Bools, Bools]:
    """Windows whose deviation, beside the largest, is so small that the error of a covariance shows in a correlation."""
    bound = np.sqrt(_resolution(_seen(profile, measure, before), measure) / CORRELATION_TOLERANCE)
    mine, theirs = ((each.deviations < bound) & each.whole & ~each.constant for each in (measure.a, measure.b))
    return mine, theirs


def _close(profile: Profile, measure: Measure, before: Floats, mine: Bools, theirs: Bools) -> Bools:
    """Rows, not quiet, with a neighbour so near that a small error of a correlation could hide a nearer one."""
    lively = measure.b.deviations[measure.b.whole & ~measure.b.constant & ~theirs]
    if not len(lively):
        return np.zeros(len(measure.a), dtype=np.bool_)
    resolution = _resolution(_seen(profile, measure, before), measure)
    there = measure.a.whole & ~measure.a.constant & ~mine
    error = resolution / (np.where(there, measure.a.deviations, 1.0) * lively.min())
    near = np.where(np.isfinite(profile.distances[:, -1]), profile.distances[:, -1], np.inf) / measure.unit
    off = np.minimum(np.sqrt(2 * error), error / np.maximum(near, EPS))
    return np.asarray(there & (near > 8 * EPS) & (off > PAIR_TOLERANCE))


def _seen(profile: Profile, measure: Measure, before: Floats) -> Floats:
    """The errors of the covariances of the pairs named, in units of the largest."""
    i, column = np.nonzero(np.isfinite(profile.distances) & np.isfinite(before))
    j = profile.indices[i, column]
    apart = np.abs(profile.distances[i, column] ** 2 - before[i, column] ** 2) / (2 * measure.a.m)
    return np.asarray(apart * measure.a.deviations[i] * measure.b.deviations[j])


def _unresolved(profile: Profile, measure: Norms, before: Floats) -> float:
    """A distance below this, to the power p, does not stand well above the error of a running sum of such powers."""
    farthest = measure.farthest() or 1.0
    now, then = profile.distances / farthest, before / farthest
    found = np.isfinite(now) & np.isfinite(then)
    seen = np.abs(now[found] ** measure.p - then[found] ** measure.p)
    return float(farthest * min(1.0, _resolution(seen, measure) / PAIR_TOLERANCE) ** (1.0 / measure.p))


def _within(profile: Profile, measure: Measure, sides: Ints, bound: float) -> Bools:
    """Where the nearest window on one side is nearer than `bound`, and not equal: bool (2, l)."""
    rows = np.arange(profile.windows)
    apart = np.stack([distances_to(measure, rows, side) for side in sides])
    return np.asarray((apart > 0) & (apart < bound))


def _resolution(seen: Floats, measure: Measure) -> float:
    """The error of a running sum, in units of the largest it passed.

    At worst 4·eps·sqrt(l). Mostly far less: errors go both ways, so one that could hide a neighbour feigns others, and
    ten times the largest error seen among the pairs named bounds it too.
    """
    worst = 4 * EPS * np.sqrt(max(len(measure.a), len(measure.b)))
    return float(min(worst, 10 * seen.max(initial=EPS)))


def _off(profile: Profile, measure: Measure, before: Floats) -> Bools:
    """Pairs whose computed distance was not their distance."""
    here = profile.indices >= 0
    now, then = np.where(here, profile.distances, 0.0), np.where(here, before, 0.0)
    if isinstance(measure, Norms):
        wrong = np.abs(now - then) > PAIR_TOLERANCE * np.maximum(now, then)
    else:
        wrong = np.abs(now**2 - then**2) > 2 * measure.a.m * CORRELATION_TOLERANCE
    return np.asarray(wrong)


def _lacking(profile: Profile, measure: Measure, *, self_join: bool) -> Bools:
    found = np.count_nonzero(profile.indices >= 0, axis=1)
    return np.asarray(found < np.minimum(candidates(measure, self_join=self_join), profile.k))


def candidates(measure: Measure, *, self_join: bool) -> Ints:
    """How many neighbours each window of a could have: int64 (l,)."""
    counted = np.concatenate([[0], np.cumsum(measure.b.whole)])
    rows = np.arange(len(measure.a))
    if not self_join:
        return np.where(measure.a.whole, counted[-1], 0)
    zone = exclusion_zone(measure.a.m)
    trivial = counted[np.minimum(rows + zone + 1, len(rows))] - counted[np.maximum(rows - zone, 0)]
    return np.where(measure.a.whole, counted[-1] - trivial, 0)
