"""Checking a computed profile against the definition, and mending what running sums got wrong.

STUMPY carries one sum along a diagonal, so its absolute error is that of the largest values it passed: where a lively
stretch or a single burst precedes a quiet one, windows far away are reported as perfect matches. Here every pair a
profile names is measured again, windows the sums could not resolve are computed anew, and at last some rows taken at
random are compared in full.
"""

from typing import Any, Final

import numpy as np

from workers.matrix_profile import exact
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.doubt import PAIR_TOLERANCE, Doubts, doubts
from workers.matrix_profile.profile import Floats, Ints, Profile
from workers.reporting import Reporter

SAMPLED_ROWS: Final = 8
PERFECT_ROWS: Final = 3
SEED: Final = 20190527
LEAST_SECONDS: Final = 4.0
"""What mending may always take; it may also take as long as the profile itself."""


def verify(profile: Profile, measure: Measure, *, self_join: bool, seconds: float, report: Reporter) -> dict[str, Any]:
    """Mend `profile` in place and say how well it agrees with the definition.

    seconds: how long the profile was expected to take. Returns {"rows_checked", "max_abs_difference",
    "rows_recomputed"}: rows compared in full after mending, their largest difference before they too were replaced,
    and the rows computed anew on the way.
    """
    before = exact.remeasure(profile, measure)
    found = doubts(profile, measure, before, self_join=self_join)
    allowed = max(SAMPLED_ROWS, int((LEAST_SECONDS + seconds) / (measure.seconds_per_pair * len(measure.b))))
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
    checked = _spot_check(profile, measure, allowed, self_join=self_join, report=report)
    return checked | {"rows_recomputed": len(mended)}


def _mend(profile: Profile, measure: Measure, found: Doubts, rows: Ints, allowed: int, *, self_join: bool) -> None:
    """Compute `rows` anew, and let every quiet window be found by the rows that stay."""
    exact.recompute(profile, measure, rows, self_join=self_join)
    others = np.setdiff1d(np.flatnonzero(measure.a.whole), rows)
    exact.offer(profile, measure, np.flatnonzero(found.quiet)[:allowed], others, self_join=self_join)


def _spot_check(
    profile: Profile, measure: Measure, allowed: int, *, self_join: bool, report: Reporter
) -> dict[str, Any]:
    rows = _chosen(profile, measure)[: max(SAMPLED_ROWS, allowed)]
    if not len(rows):
        return {"rows_checked": 0, "max_abs_difference": 0.0}
    truth = exact.neighbours(profile, measure, rows, self_join=self_join)
    for row, column in np.argwhere(truth.indices >= 0):
        truth.distances[row, column] = measure.precisely(int(rows[row]), int(truth.indices[row, column]))
    apart = _apart(profile.distances[rows], truth.distances)
    wrong = rows[np.any(apart > PAIR_TOLERANCE * np.sqrt(measure.a.m) + 1e-6 * _finite(truth.distances), axis=1)]
    if len(wrong):
        exact.recompute(profile, measure, wrong, self_join=self_join)
        report.warning(
            f"{len(wrong)} of {len(rows)} rows compared with the definition differed and were replaced", rows=len(wrong)
        )
    return {"rows_checked": len(rows), "max_abs_difference": float(apart.max())}


def _chosen(profile: Profile, measure: Measure) -> Ints:
    """Rows at random, and those a reader looks at: the motif, its neighbour, the discord, some perfect matches."""
    whole = np.flatnonzero(measure.a.whole)
    nearest = profile.distances[:, 0]
    named: list[int] = []
    if np.isfinite(nearest).any():
        motif = int(nearest.argmin())
        named += [motif, int(np.where(np.isfinite(nearest), nearest, -np.inf).argmax())]
        named += [int(i) for i in np.flatnonzero(nearest == 0.0)[:PERFECT_ROWS]]
    sampled = np.random.default_rng(SEED).choice(whole, min(SAMPLED_ROWS, len(whole)), replace=False)
    return np.unique(np.concatenate([np.array(named, dtype=np.int64), sampled]))


def _apart(ours: Floats, truth: Floats) -> Floats:
    """|ours - truth|; 0 where both lack a neighbour, the distance itself where one does."""
    return np.abs(_finite(ours) - _finite(truth))


def _finite(distances: Floats) -> Floats:
    return np.where(np.isfinite(distances), distances, 0.0)
