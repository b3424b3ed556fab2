"""A finished row of a pan profile, and its comparison with the definition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.matrix_profile import exact
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.profile import Floats, Ints, Profile, exclusion_zone
from workers.matrix_profile.records import Record
from workers.matrix_profile.tiles.grid import CELLS_PER_SECOND
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.treatment import Treated
from workers.matrix_profile.verify import SEED, Unverifiable, allowed_rows, settle, tolerance
from workers.reporting import Reporter


@dataclass
class Row:
    """A finished row of the pan profile. distances: float64 (l,), in the units of the series as it came, inf where there is
    no neighbour.  best: the window whose neighbour is nearest, and that neighbour; -1 where there is none."""

    distances: Floats
    best: tuple[int, int]
    checked: Mapping[str, Any]

    def record(self, m: int) -> Record:
        return Record({"m": m, "best": self.best, "checked": dict(self.checked)}, {"distances": self.distances})

    @classmethod
    def of(cls, record: Record) -> "Row":
        window, neighbor = record.about["best"]
        return cls(record.arrays["distances"], (window, neighbor), record.about["checked"])


def check(profile: Profile, pairs: Pairs, measure: Measure, treated: Treated, report: Reporter) -> dict[str, Any]:
    """Compare the nearest pair's row and one at random with the definition; should one differ, compute all anew.

    profile, measure: of the series as it came.  pairs: of the treated one. There are many rows to a pan profile, so few windows of
    each are looked through.
    """
    rows, count = _rows(profile, measure), profile.windows
    apart = [_apart(profile, pairs, measure, treated, row) for row in rows]
    recomputed = 0
    if differing := sum(each is None for each in apart):
        recomputed = count
        allowed = allowed_rows(count**2 / 2 / CELLS_PER_SECOND, measure.seconds_per_pair * count)
        settle(differing, len(rows), recomputed, allowed, report)
        exact.recompute(profile, measure, np.arange(count), self_join=True)
        apart = [_apart(profile, pairs, measure, treated, row) for row in rows]
        if None in apart:
            raise Unverifiable(f"windows of {pairs.a.m} samples differ from the definition also when computed from it")
    largest = max((each for each in apart if each is not None), default=0.0)
    return {"rows_checked": len(rows), "max_abs_difference": largest, "rows_recomputed": recomputed}


def _apart(profile: Profile, pairs: Pairs, measure: Measure, treated: Treated, row: int) -> float | None:
    """By how much a row's distance is not that to the nearest window; None where it is another."""
    said, named, zone = float(profile.distances[row, 0]), int(profile.indices[row, 0]), exclusion_zone(pairs.a.m)
    truth = measure.precisely(row, named) if named >= 0 else np.inf
    nearest, better = float(treated.back(np.asarray(truth))), -1
    for first, stop in ((0, row - zone), (row + zone + 1, profile.windows)):
        nearest, other = pairs.nearer(row, first, stop, nearest)
        better = other if other >= 0 else better
    if better >= 0:
        truth = measure.precisely(row, better)
    if not np.isfinite(truth):
        return 0.0 if truth == said else None
    return abs(said - truth) if abs(said - truth) <= tolerance(measure, np.array([truth]))[0] else None


def _rows(profile: Profile, measure: Measure) -> list[int]:
    """Of the nearest pair the first, and one at random."""
    whole: Ints = np.flatnonzero(measure.a.whole)
    if not len(whole):
        return []
    drawn = int(np.random.default_rng((SEED, measure.a.m)).choice(whole))
    return sorted({int(whole[profile.distances[whole, 0].argmin()]), drawn})
