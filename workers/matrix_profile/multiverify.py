"""Checking a multidimensional profile against the definition, and mending what running sums got wrong.

STUMPY runs a sum on from row to row, uncentred, so its error is that of the largest values a dimension ever had. As in
verify.py, every pair named is measured again. All rows that this error may have spoilt are computed anew, not some: a
neighbour that was missed leaves no trace in the pair named. At last some rows taken at random are compared in full.
"""

from typing import Any, Final

import numpy as np

from workers.matrix_profile.dimensions import Dimensions, MultiProfile
from workers.matrix_profile.multidoubt import risk
from workers.matrix_profile.multimend import Mending, differ
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.verify import PERFECT_ROWS, SAMPLED_ROWS, SEED, Unverifiable, allowed_rows, finite, settle
from workers.reporting import Reporter

EXTRA_SECONDS: Final = 2.0
"""What telling apart neighbours that are almost equally near may take, besides as long as the profile itself."""


def verify(
    profile: MultiProfile, space: Dimensions, treated: list[Floats], *, seconds: float, report: Reporter
) -> dict[str, Any]:
    """Mend `profile` in place and say how well it agrees with the definition, as verify.verify does.

    treated: the series (n,) as STUMPY had them.
    """
    mending = Mending(profile, space)
    spoilt = mending.remeasure()
    allowed = allowed_rows(seconds, space.seconds_per_row)
    found = risk(profile, space, treated)
    first = np.union1d(np.flatnonzero(found.must & mending.alive), spoilt)
    if len(first) > allowed:
        raise Unverifiable(
            f"rounding spoilt the neighbours of {len(spoilt)} of {space.windows} windows and may have spoilt those of "
            f"{len(first) - len(spoilt)} more, and computing them anew would take too long. Send shorter series, or "
            "series without bursts and sentinels."
        )
    mending.wrong.update(spoilt.tolist())
    mending.renew(first, offer=bool(space.unit))
    _further(mending, found.may[~np.isin(found.may, first)], found.earnest, seconds, allowed - len(first))
    if mending.wrong:
        report.warning(
            f"rounding had spoilt the neighbours of {len(mending.wrong)} windows; {len(mending.done)} were computed "
            "again, exactly",
            wrong=len(mending.wrong),
            recomputed=len(mending.done),
        )
    rows = chosen_rows(profile, space)
    differing, largest = compare(profile, space, rows)
    if differing:
        settle(differing, len(rows), space.windows, allowed, report)
        mending.renew(np.flatnonzero(mending.alive), offer=False)
        differing, largest = compare(profile, space, rows)
        if differing:
            raise Unverifiable(f"{differing} of {len(rows)} rows differ from the definition also when computed from it")
    checked = len(np.union1d(rows, np.array(sorted(mending.done), dtype=np.int64)))
    return {"rows_checked": checked, "max_abs_difference": largest, "rows_recomputed": len(mending.wrong)}


def _further(mending: Mending, rows: Ints, earnest: int, seconds: float, left: int) -> None:
    """Compute anew the rows whose nearest two may be mistaken for each other, most doubtful first, as far as time allows."""
    quick = int((EXTRA_SECONDS + seconds) / mending.space.seconds_per_row)
    mending.renew(rows[: min(left, max(quick, earnest))], offer=False)


def chosen_rows(profile: MultiProfile, space: Dimensions) -> Ints:
    """Rows at random, and for each number of dimensions the motif, the discord and some perfect matches."""
    named: list[int] = []
    for distances in profile.distances:
        found = np.isfinite(distances)
        if found.any():
            named += [int(distances.argmin()), int(np.where(found, distances, -np.inf).argmax())]
            named += [int(i) for i in np.flatnonzero(distances == 0.0)[:PERFECT_ROWS]]
    whole = np.flatnonzero(np.any([each.a.whole for each in space.measures], axis=0))
    drawn = np.random.default_rng(SEED).choice(whole, min(SAMPLED_ROWS, len(whole)), replace=False)
    return np.unique(np.concatenate([np.array(named, dtype=np.int64), drawn]))


def compare(profile: MultiProfile, space: Dimensions, rows: Ints) -> tuple[int, float]:
    """How many of `rows` differ from the definition, and the largest difference."""
    differing, largest = 0, 0.0
    for i in rows:
        row = np.array([i], dtype=np.int64)
        nearest, named = space.nearest(row, space.rows(row))
        truth, indices = nearest[:, 0].copy(), named[:, 0]
        for number in {0, len(truth) // 2, len(truth) - 1}:
            if indices[number] >= 0:
                truth[number] = space.precisely(int(i), int(indices[number]))[number]
        ours = profile.distances[:, i]
        differing += bool(differ(ours, truth, space.unit).any())
        largest = max(largest, float(np.abs(finite(ours) - finite(truth)).max()))
    return differing, largest
