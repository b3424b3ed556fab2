"""The loops of pairs.py over pairs. All let go of the interpreter's lock; the order of a sum is left to the compiler."""

import math
from typing import Any, Final

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Bools, Floats, Ints

TINY: Final = 1e-280
HUGE: Final = 1e280
"""A sum of squares outside of these may have lost digits, or itself."""

quick: Any = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
"""No value that comes here is NaN."""
even: Any = njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "nnan"})
"""Nothing is fused, so that what is done to two equal windows gives equal numbers, and their distance is 0."""


@even
def standards(values: Floats, m: int, factor: Floats, middle: Floats, inverse: Floats) -> None:
    """For each window, see pairs.Shapes: the mean of its differences to its first sample, and one over the length of
    what remains; where that is tiny, once more after a power of two has brought the largest difference near 1."""
    apart = np.empty(m)
    for i in range(len(factor)):
        # Kept in memory, where no freedom of order turns a sum of small differences into a difference of large sums.
        window = values[i : i + m]
        for k in range(m):
            apart[k] = window[k] - window[0]
        factor[i] = 1.0
        middle[i], total = _moments(apart)
        if total < TINY:
            largest = np.abs(apart).max()
            factor[i] = math.ldexp(1.0, -max(-1021, math.frexp(largest)[1]))
            apart *= factor[i]
            middle[i], total = _moments(apart)
        inverse[i] = 1.0 / math.sqrt(total) if total > 0.0 else 0.0


@even
def _moments(values: Floats) -> tuple[float, float]:
    """Mean, and sum of squared deviations from it."""
    total, squares = 0.0, 0.0
    for k in range(len(values)):
        total += values[k]
    middle = total / len(values)
    for k in range(len(values)):
        squares += (values[k] - middle) * (values[k] - middle)
    return middle, squares


@even
def shape_pairs(
    x: Floats, y: Floats, m: int, xs: Any, ys: Any, whole_x: Bools, whole_y: Bools, constant_x: Bools,
    constant_y: Bools, i: Ints, j: Ints, found: Floats,
) -> None:  # fmt: skip
    """found[r]: sqrt(m) times the length of the difference of shapes i[r] of x and j[r] of y; see definition.Shapes."""
    for r in range(len(i)):
        p, q = i[r], j[r]
        if q < 0 or q >= len(whole_y) or not whole_x[p] or not whole_y[q]:
            found[r] = np.inf
        elif constant_x[p] or constant_y[q]:
            found[r] = 0.0 if constant_x[p] and constant_y[q] else math.sqrt(m)
        else:
            f, u, g, v = xs.factor[p], xs.inverse[p], ys.factor[q], ys.inverse[q]
            one, other = x[p : p + m], y[q : q + m]  # loops over slices become vector code, over x[p + k] they do not
            total, head, tail, between = 0.0, one[0], other[0], xs.middle[p] * u - ys.middle[q] * v
            if f == 1.0 and g == 1.0:
                for k in range(m):
                    part = (one[k] - head) * u - (other[k] - tail) * v - between
                    total += part * part
            else:
                for k in range(m):
                    part = (one[k] - head) * f * u - (other[k] - tail) * g * v - between
                    total += part * part
            found[r] = math.sqrt(total * m)


@quick
def norm_pairs(x: Floats, y: Floats, m: int, whole_x: Bools, whole_y: Bools, i: Ints, j: Ints, found: Floats) -> None:
    """found[r]: the length of the difference of window i[r] of x and window j[r] of y."""
    for r in range(len(i)):
        p, q = i[r], j[r]
        if q < 0 or q >= len(whole_y) or not whole_x[p] or not whole_y[q]:
            found[r] = np.inf
            continue
        total, one, other = 0.0, x[p : p + m], y[q : q + m]
        for k in range(m):
            total += (one[k] - other[k]) * (one[k] - other[k])
        scale = 1.0
        if total < TINY or total > HUGE:
            scale = np.abs(one - other).max()
            total = 0.0
            for k in range(m if scale > 0.0 else 0):
                part = (one[k] - other[k]) / scale
                total += part * part
        found[r] = scale * math.sqrt(total)
