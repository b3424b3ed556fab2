"""The one loop that numpy is too slow for: dot products of a few windows with all windows of a series."""

from typing import Any

from numba import njit

from workers.matrix_profile.profile import Floats


def _correlations(shapes: Floats, values: Floats, levels: Floats, lengths: Floats, found: Floats) -> None:
    """found[i, j] = shapes[i] · (values[j : j+m] - levels[j]) / lengths[j].

    Each product is taken anew and from values near zero, so its error is that of its own window: nothing runs on.
    """
    m = shapes.shape[1]
    for i in range(shapes.shape[0]):
        for j in range(len(levels)):
            total = 0.0
            level = levels[j]
            for k in range(m):
                total += shapes[i, k] * (values[j + k] - level)
            found[i, j] = total / lengths[j]


# The order of a sum is free, which lets it be vectorised; nothing else is.
correlations: Any = njit(cache=True, fastmath={"reassoc", "contract", "nsz"})(_correlations)
