"""Distances from one window to all of another series, as `ostinato` asks for them, straight from the definition.

STUMPY zero-fills missing values before it joins, and compares windows across series by uncentred products. Here it is
handed the joins and the distances of the series as they came: windows with gaps are infinitely far from all others.
"""

from typing import Any

import numpy as np

from workers.matrix_profile import base as bases
from workers.matrix_profile import exact
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.profile import Floats, Ints
from workers.stumpys import core


class Across:
    """All series of a consensus, at one window length."""

    def __init__(self, base: bases.Base, m: int) -> None:
        self.base, self.m = base, m

    @property
    def slack(self) -> float:
        """What equal radii may differ by, absolutely."""
        return 1e-8 * float(np.sqrt(self.m)) if self.base.distance.normalize else 0.0

    def distances(self, a: int, row: int, b: int) -> Floats:
        """Window `row` of series a to all windows of series b: float64 (l_b,), the nearest exact to rounding."""
        measure, rows = self._measure(a, b), np.array([row])
        found = measure.rows(rows)
        nearest, indices = exact.nearest(found, rows, measure, 1)
        distances: Floats = found[0]
        if indices[0, 0] >= 0:
            distances[distances <= nearest[0, 0]] = np.nextafter(nearest[0, 0], np.inf)
            distances[indices[0, 0]] = nearest[0, 0]
        return distances

    def neighbors(self, number: int, row: int) -> tuple[Floats, Ints]:
        """A window's nearest in each series: distances float64 (k,) in the units of the series, 0 in its own, and where."""
        count = len(self.base.series)
        distances, indices = np.zeros(count), np.full(count, row)
        for other in range(count):
            if other != number:
                found = self.distances(number, row, other)
                indices[other] = found.argmin()
                if np.isfinite(found.min()):
                    distances[other] = self._measure(number, other).precisely(row, int(indices[other]))
                else:
                    distances[other] = np.inf
        return distances, indices

    def _measure(self, a: int, b: int) -> Measure:
        return self.base.distance.measure(self.base.windows(a, self.m), self.base.windows(b, self.m))


class SeriesCore:
    """`stumpy.core` for STUMPY's search, except that distances come from the definition."""

    def __init__(self, across: Across) -> None:
        self._across, self._base = across, across.base

    def __getattr__(self, name: str) -> Any:
        return getattr(core, name)

    def preprocess(self, T: Floats, m: int, **keywords: Any) -> Any:
        return self._known(T, core.preprocess(T, m, **keywords))

    def preprocess_non_normalized(self, T: Floats, m: int, **keywords: Any) -> Any:
        return self._known(T, core.preprocess_non_normalized(T, m, **keywords))

    def sliding_dot_product(self, Q: Floats, T: Floats) -> None:
        """Of no use to `_mass` below."""

    def _mass(self, Q: Floats, T: Floats, *rest: Any) -> Floats:
        return self.mass_absolute(Q, T)

    def mass_absolute(self, Q: Floats, T: Floats, *rest: Any, **keywords: Any) -> Floats:
        """Distances (l,) of a window of one series to those of another, in the units of the treated series."""
        whole: Any = Q.base  # Q is a stretch of an array we gave out
        row = (Q.ctypes.data - whole.ctypes.data) // Q.itemsize
        found = self._across.distances(self._base.number(whole), row, self._base.number(T))
        return self._base.treated.back(found)

    def _known(self, T: Floats, prepared: Any) -> Any:
        self._base.know(prepared[0], self._base.number(T))
        return prepared
