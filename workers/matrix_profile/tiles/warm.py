"""Making a process ready to compute tiles at once: the kernels compiled, or loaded from Numba's disk cache."""

from typing import Final

import numpy as np

from workers.matrix_profile.tiles.alone import ab_join, self_join

SERIES: Final = np.random.default_rng(0).standard_normal(200).round(3)


def warm() -> None:
    """Run every kernel once on a few samples, in the plain and in the careful gear: seconds with an empty disk cache."""
    burst = SERIES.copy()
    burst[100] = 1e9
    for normalize in (True, False):
        for series in (SERIES, burst):
            self_join(series, 8, normalize=normalize, threads=1)
            ab_join(series, SERIES[:100], 8, normalize=normalize, threads=1)
