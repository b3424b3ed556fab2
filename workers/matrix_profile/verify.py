"""Checking a computed profile against the definition, and mending what running sums got wrong.

STUMPY carries one sum along a diagonal, so its absolute error is that of the largest values it passed: where a lively
stretch or a single burst precedes a quiet one, windows far away are reported as perfect matches. Here every pair a
profile names is measured again, windows the sums could not resolve are computed anew, and at last some rows taken at
random are compared in full.
"""

from typing import Any, Final

import numpy as np

from workers.failures import JobFailure
from workers.matrix_profile import exact
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.doubt import PAIR_TOLERANCE, Doubts, doubts
from workers.matrix_profile.profile import Bools, Floats, Ints, Profile
from workers.reporting import Reporter

SAMPLED_ROWS: Final = 8
PERFECT_ROWS: Final = 3
SEED: Final = 20190527
LEAST_SECONDS: Final = 20.0
"""What mending may always take by its estimate; it may also take four times as long as the profile itself."""


class Unverifiable(JobFailure):
    """The result could not be shown to be right: rows compared with the definition differ, and too many to compute anew."""

    slug, title, status = "unverifiable", "The result could not be verified", 500


def verify(
    profile: Profile,
    measure: Measure,
    *,
    self_join: bool,
    seconds: float,
    report: Reporter,
    sampled: int = SAMPLED_ROWS,
) -> dict[str, Any]:
    """Mend `profile` in place and say how well it agrees with the definition.

    seconds: how long the profile was expected to take. sampled: rows taken at random. Returns {"rows_checked",
    "max_abs_difference", "rows_recomputed"}: rows compared in full after mending, their largest difference then, and
    the rows computed anew on the way. Raises Unverifiable where they differ and not all rows can be computed anew.
    """
    before = exact.remeasure(profile, measure)
    found = doubts(profile, measure, before, self_join=self_join)
    allowed = allowed_rows(seconds, measure.seconds_per_pair * len(measure.b))
    mended, left = found.rows[:allowed], found.rows[allowed:]
    _mend(profile, measure, found, mended, allowed, self_join=self_join)
    if found.wrong:
        report.warning(
            f"rounding had spoilt the neighbours of {found.wrong} windows; {len(mended)} were computed again, exactly",
            wrong=found.wrong,
            recomputed=len(mended),
        )
    elif len(mended):
        report.log(f"{len(mended)} windows are much quieter than the liveliest; they were computed again, exactly")
    if len(left):
        report.warning(
            f"{len(left)} windows are so much quieter than the liveliest that their nearest neighbours are uncertain; "
            "the distances given are exact for the pairs named",
            uncertain=len(left),
        )
    rows = chosen_rows(profile, measure, sampled)
    differing, largest = _compare(profile, measure, rows, self_join=self_join)
    recomputed = len(mended)
    if differing:
        recomputed = len(measure.a)
        settle(differing, len(rows), recomputed, allowed, report)
        exact.recompute(profile, measure, np.arange(recomputed), self_join=self_join)
        differing, largest = _compare(profile, measure, rows, self_join=self_join)
        if differing:
            raise Unverifiable(f"{differing} of {len(rows)} rows differ from the definition also when computed from it")
    return {"rows_checked": len(rows), "max_abs_difference": largest, "rows_recomputed": recomputed}


def allowed_rows(seconds: float, seconds_per_row: float) -> int:
    """How many rows mending may compute anew."""
    return max(SAMPLED_ROWS, int((LEAST_SECONDS + 4 * seconds) / seconds_per_row))


def settle(differing: int, checked: int, rows: int, allowed: int, report: Reporter) -> None:
    """What follows when rows compared with the definition differ: all are computed anew, or the job fails."""
    seen = f"{differing} of {checked} rows compared with the definition differed from it"
    if rows > allowed:
        raise Unverifiable(
            f"{seen}, and computing all {rows} anew would take too long. Send a shorter series, or one without bursts, "
            "sentinels or stretches that are millions of times quieter than the rest."
        )
    report.warning(f"{seen}; all {rows} were computed again, exactly", rows=differing)


def _mend(profile: Profile, measure: Measure, found: Doubts, rows: Ints, allowed: int, *, self_join: bool) -> None:
    """Compute `rows` anew, and let every quiet window be found by the rows that stay."""
    exact.recompute(profile, measure, rows, self_join=self_join)
    others = np.setdiff1d(np.flatnonzero(measure.a.whole), rows)
    exact.offer(profile, measure, np.flatnonzero(found.quiet)[:allowed], others, self_join=self_join)


def _compare(profile: Profile, measure: Measure, rows: Ints, *, self_join: bool) -> tuple[int, float]:
    """How many of `rows` differ from the definition, and the largest difference."""
    if not len(rows):
        return 0, 0.0
    truth = exact.neighbours(profile, measure, rows, self_join=self_join)
    for row, column in np.argwhere(truth.indices >= 0):
        truth.distances[row, column] = measure.precisely(int(rows[row]), int(truth.indices[row, column]))
    apart = _apart(profile.distances[rows], truth.distances)
    lacking = np.isfinite(profile.distances[rows]) != np.isfinite(truth.distances)
    wrong = np.any(lacking | (apart > tolerance(measure, truth.distances)), axis=1)
    if self_join:
        wrong |= _beside_differ(profile, truth, measure, rows)
    return int(np.count_nonzero(wrong)), float(apart.max())


def _beside_differ(profile: Profile, truth: Profile, measure: Measure, rows: Ints) -> Bools:
    """Which of `rows` name a window before or after them that is not the nearest there."""
    differ = np.zeros(len(rows), dtype=np.bool_)
    for ours, theirs in ((profile.left[rows], truth.left), (profile.right[rows], truth.right)):
        apart, nearest = (exact.distances_to(measure, rows, each) for each in (ours, theirs))
        differ |= np.isfinite(apart) != np.isfinite(nearest)
        differ |= _apart(apart, nearest) > tolerance(measure, nearest)
    return differ


def tolerance(measure: Measure, distances: Floats) -> Floats:
    """How far a distance may be from its definition."""
    return np.asarray(measure.unit * PAIR_TOLERANCE + 1e-6 * finite(distances))


def chosen_rows(profile: Profile, measure: Measure, sampled: int) -> Ints:
    """Rows at random, and those a reader looks at: the motif, its neighbour, the discord, some perfect matches."""
    whole = np.flatnonzero(measure.a.whole)
    nearest = profile.distances[:, 0]
    named: list[int] = []
    if np.isfinite(nearest).any():
        motif = int(nearest.argmin())
        named += [motif, int(np.where(np.isfinite(nearest), nearest, -np.inf).argmax())]
        named += [int(i) for i in np.flatnonzero(nearest == 0.0)[:PERFECT_ROWS]]
    drawn = np.random.default_rng(SEED).choice(whole, min(sampled, len(whole)), replace=False)
    return np.unique(np.concatenate([np.array(named, dtype=np.int64), drawn]))


def _apart(ours: Floats, truth: Floats) -> Floats:
    """|ours - truth|; 0 where both lack a neighbour, the distance itself where one does."""
    return np.abs(finite(ours) - finite(truth))


def finite(distances: Floats) -> Floats:
    return np.where(np.isfinite(distances), distances, 0.0)
