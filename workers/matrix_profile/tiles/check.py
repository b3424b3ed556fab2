"""Whether a profile is right: every pair it names is measured again, every window is offered the neighbours that those
next to it found, and some rows are compared with all windows.

The tiles bound their own errors, so nothing should ever be found here; if it is, rows are computed anew from the
definition, or the job fails. It takes a fiftieth of the time of a long join.
"""

from typing import Any, Final

import numpy as np

from workers.matrix_profile import exact
from workers.matrix_profile.definition import Measure, Shapes
from workers.matrix_profile.profile import Profile
from workers.matrix_profile.tiles.comparison import Comparison
from workers.matrix_profile.tiles.pairs import Pairs, pair_seconds
from workers.matrix_profile.verify import SAMPLED_ROWS, Unverifiable, allowed_rows, settle
from workers.reporting import Reporter

SHARE: Final = 0.01
"""Of the join's time, for looking at all rows; and as much for comparing some with all windows."""
LEAST_BUDGET: Final = 2e-3
"""Seconds that both may take in any case."""
GLANCES: Final = 2
"""Pairs measured for each row, or a few more."""
LEAST_ROWS: Final = 8192
"""So many rows are looked at, if there are as many, whatever it takes."""
LEAST_SAMPLED: Final = 2
ROW_SECONDS: Final = 1.2e-10
"""Comparing a row with all windows takes, for each sample of each window."""
SPOILT: Final = 0.1
"""With more rows wrong than this share, none is believed."""
MOST_AROUND: Final = 1024
"""Rows computed anew on either side of one that is wrong: what spoilt it may have spoilt those too."""


def check(
    profile: Profile,
    measure: Measure,
    *,
    self_join: bool,
    seconds: float,
    report: Reporter,
    threads: int = 1,
    pairs: Pairs | None = None,
    sampled: int = SAMPLED_ROWS,
) -> dict[str, Any]:
    """Compare `profile` (k=1) with the definition, and mend it in place.

    measure: Shapes, or Norms with p=2, on the series as they came.  seconds: what the join was expected to take; mending
    may take four times as long.  pairs: those of the join, where normalised; scaling leaves them as they are.
    Returns {"rows_checked", "max_abs_difference", "rows_recomputed"} as verify() does.
    Raises Unverifiable where too much is wrong to be computed anew.
    """
    if pairs is None:
        pairs = Pairs.of(measure.a, measure.b, normalize=isinstance(measure, Shapes), threads=threads)
    budget, windows = max(LEAST_BUDGET, SHARE * seconds * threads), len(measure.a)
    dear = int(windows * GLANCES * pair_seconds(measure.a.m) / budget)
    step = max(1, min(windows // LEAST_ROWS, dear))
    comparison = Comparison(profile, measure, pairs, np.arange(0, windows, step), self_join=self_join)
    allowed = allowed_rows(seconds, measure.seconds_per_pair * len(measure.b))
    recomputed = _mend(comparison, allowed, report)
    affordable = budget / (ROW_SECONDS * measure.a.m * len(measure.b))
    rows = comparison.sample(int(max(LEAST_SAMPLED, min(sampled, affordable))))
    differing, largest = comparison.looked_through(rows)
    if differing:
        recomputed = profile.windows
        settle(differing, len(rows), recomputed, allowed, report)
        exact.recompute(profile, measure, np.arange(recomputed), self_join=self_join)
        differing, largest = comparison.looked_through(rows)
        if differing:
            raise Unverifiable(f"{differing} of {len(rows)} rows differ from the definition also when computed from it")
    return {"rows_checked": len(rows), "max_abs_difference": largest, "rows_recomputed": recomputed}


def _mend(comparison: Comparison, allowed: int, report: Reporter) -> int:
    """Compute anew what is plainly wrong, and in each round twice as much around it, until nothing is. Returns how many
    rows that were."""
    wrong = comparison.mistaken() | comparison.outdone()
    seen, done, reach = int(np.count_nonzero(wrong)), np.zeros(len(wrong), dtype=np.bool_), 1
    while wrong.any():
        around = np.flatnonzero(wrong)[:, None] + np.arange(1 - reach, reach)
        rows = np.setdiff1d(np.clip(around, 0, len(wrong) - 1), np.flatnonzero(done))
        if np.count_nonzero(done) + len(rows) > SPOILT * len(wrong):
            rows = np.flatnonzero(~done)
        done[rows] = True
        if np.count_nonzero(done) > allowed:
            raise Unverifiable(
                f"{seen} of {len(wrong)} rows have another neighbour than they should have, and computing them anew "
                "would take too long"
            )
        exact.recompute(comparison.profile, comparison.measure, rows, self_join=comparison.self_join)
        wrong = comparison.outdone() & ~done
        reach = min(2 * reach, MOST_AROUND)
    recomputed = int(np.count_nonzero(done))
    if seen:
        report.warning(
            f"{seen} windows had not the neighbour they should have; {recomputed} were computed again, exactly",
            wrong=seen,
            recomputed=recomputed,
        )
    return recomputed
