"""The loops of pairs.py that look through all windows: they say which may be near, and err on the side of saying so."""

import math
from typing import Any, Final

import numpy as np

from workers.matrix_profile.profile import Bools, Floats, Ints
from workers.matrix_profile.tiles.loops import TINY, quick

EPS: Final = float(np.finfo(np.float64).eps)
BLOCK: Final = 256
"""Windows compared with one at a time: their running sums stay in the nearest cache."""


@quick
def near_shapes(
    shape: Floats, flat: bool, y: Floats, ys: Any, whole: Bools, constant: Bools, first: int, stop: int, limit: float,
    found: Ints,
) -> int:  # fmt: skip
    """Which of the windows [first, stop) of y may have a correlation above `limit` with a `shape` (m,) of length 1.

    flat: the shape is that of a constant window. Their numbers come into `found`; returns how many. A sum over m
    products of a shape and values within `reach` is off by at most m·eps·sqrt(m)·reach: so much is allowed for.
    """
    m, count = len(shape), 0
    near, sums = np.empty(BLOCK + m - 1), np.empty(BLOCK)
    for start in range(first, stop, BLOCK):
        width = min(BLOCK, stop - start)
        level, reach = y[start], 0.0
        for k in range(width + m - 1):
            near[k] = y[start + k] - level
            reach = max(reach, abs(near[k]))
        for k in range(width + m - 1, BLOCK + m - 1):
            near[k] = 0.0
        sums[:] = 0.0
        whole_m = m // 4 * 4
        for k in range(0, whole_m, 4):
            a, b, c, d = shape[k], shape[k + 1], shape[k + 2], shape[k + 3]
            for w in range(BLOCK):
                sums[w] += a * near[k + w] + b * near[k + 1 + w] + c * near[k + 2 + w] + d * near[k + 3 + w]
        for k in range(whole_m, m):
            for w in range(BLOCK):
                sums[w] += shape[k] * near[k + w]
        error = 2.0 * m * EPS * math.sqrt(m) * reach
        for w in range(width):
            j = start + w
            if flat or constant[j]:
                most = 1.0 if flat and constant[j] else 0.5
            else:
                most = (sums[w] + error) * ys.factor[j] * ys.inverse[j] + 16.0 * EPS
            if most > limit and whole[j]:
                found[count] = j
                count += 1
    return count


@quick
def near_norms(window: Floats, y: Floats, whole: Bools, first: int, stop: int, limit: float, found: Ints) -> int:
    """Which of the windows [first, stop) of y may be nearer to a `window` (m,) than the root of `limit`; as above."""
    m, count = len(window), 0
    near, sums = np.zeros(BLOCK + m - 1), np.empty(BLOCK)
    for start in range(first, stop, BLOCK):
        width = min(BLOCK, stop - start)
        near[: width + m - 1] = y[start : start + width + m - 1]
        sums[:] = 0.0
        whole_m = m // 4 * 4
        for k in range(0, whole_m, 4):
            a, b, c, d = window[k], window[k + 1], window[k + 2], window[k + 3]
            for w in range(BLOCK):
                e, f, g, h = near[k + w] - a, near[k + 1 + w] - b, near[k + 2 + w] - c, near[k + 3 + w] - d
                sums[w] += e * e + f * f + g * g + h * h
        for k in range(whole_m, m):
            for w in range(BLOCK):
                sums[w] += (near[k + w] - window[k]) ** 2
        for w in range(width):
            if sums[w] * (1.0 - m * EPS) <= limit + TINY and whole[start + w]:
                found[count] = start + w
                count += 1
    return count
