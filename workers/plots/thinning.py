"""Fewer points than a series has, and the same picture."""

from typing import Any

import numpy as np


def thinned(values: Any, pixels: int) -> tuple[Any, Any]:
    """Rows and values to draw: all of them, or the least and the greatest of each pixel's stretch where there are many.

    Non-finite values become NaN, which leaves a gap; a stretch is a gap only if nothing in it is finite. Reads `values`
    (a file, perhaps) a stretch of pixels at a time.
    """
    count = len(values)
    step = count // (2 * max(1, pixels))
    if step < 2:
        drawn = np.array(values, dtype=np.float64)
        drawn[~np.isfinite(drawn)] = np.nan
        return np.arange(count), drawn
    rows = np.repeat(np.arange(0, count, step), 2)
    rows[1::2] = np.minimum(rows[1::2] + step // 2, count - 1)
    drawn = np.empty(len(rows))
    stretches = max(1, (1 << 20) // step)
    for first in range(0, len(rows) // 2, stretches):
        part = np.array(values[first * step : (first + stretches) * step], dtype=np.float64)
        part[~np.isfinite(part)] = np.nan
        starts = np.arange(0, len(part), step)
        here = slice(2 * first, 2 * (first + len(starts)))
        drawn[here] = np.stack([np.fmin.reduceat(part, starts), np.fmax.reduceat(part, starts)], axis=1).ravel()
    return rows, drawn
