"""Approximate profiles: `scrump` and `scraamp` look at a share of the pairs; the distances of the pairs they name are exact."""

from typing import Any, Final

import numpy as np

from workers.matrix_profile import exact
from workers.matrix_profile.base import Base
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.ground import stumpys
from workers.matrix_profile.profile import Floats, Profile
from workers.matrix_profile.verify import Unverifiable, chosen_rows, finite, tolerance

ORDER_SEED: Final = 20180416
"""Of the order in which STUMPY visits diagonals, so that a job gives the same answer each time."""


class Approximation:
    """Stands in for the object that a pan profile makes, updates once and reads `P_` of."""

    def __init__(self, base: Base, T: Floats, m: int, percentage: float, pre: bool) -> None:
        self.base, self.m = base, int(m)
        np.random.seed(ORDER_SEED)
        if base.distance.normalize:
            self.inner = stumpys("scrump")(T, self.m, percentage=percentage, pre_scrump=pre, k=1, normalize=True)
        else:
            self.inner = stumpys("scraamp")(T, self.m, percentage=percentage, pre_scraamp=pre, k=1, p=base.distance.p)
        self.P_: Floats = np.empty(0)

    def update(self) -> None:
        self.inner.update()
        nowhere = np.full(len(self.inner.P_), -1)
        distances = self.base.treated.distances(self.inner.P_)
        profile = Profile(distances[:, None], self.inner.I_[:, None].copy(), nowhere, nowhere.copy())
        windows = self.base.windows(0, self.m)
        self.base.checked.add(check(profile, self.base.distance.measure(windows), self.base.sampled))
        self.base.taken(0, self.m, profile, pieces=1)
        self.P_ = self.base.treated.back(profile.distances[:, 0])


def check(profile: Profile, measure: Measure, sampled: int) -> dict[str, Any]:
    """Put the exact distances of all pairs named in place; compare some rows, which may be above the truth, not below.

    max_abs_difference is that of the distances of the pairs named.
    """
    exact.remeasure(profile, measure)
    rows = chosen_rows(profile, measure, sampled)
    truth = exact.neighbours(profile, measure, rows, self_join=True)
    there = profile.indices[rows, 0] >= 0
    precise = np.array([measure.precisely(int(i), int(profile.indices[i, 0])) for i in rows[there]])
    apart = np.abs(precise - profile.distances[rows[there], 0]).max(initial=0.0)
    excess = finite(profile.distances[rows[there], 0] - truth.distances[there, 0])
    if np.any(excess < -tolerance(measure, truth.distances[there, 0])):
        raise Unverifiable("a row of the approximation is nearer to its neighbour than any window is")
    return {"rows_checked": len(rows), "max_abs_difference": float(apart), "rows_recomputed": 0}
