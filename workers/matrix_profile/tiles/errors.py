"""How wrong the plain recurrence can have become, and whether that matters to the windows at hand.

A step rounds relative to the loudest windows it passes, and the error stays; a similarity is as wrong as that is beside the
quietest windows. Rounding errors of many steps add up like a random walk, so their squares are summed.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Floats
from workers.matrix_profile.tiles.side import Side

TOLERANCE = 1e-9
"""Of a correlation, or of a squared distance beside the squared lengths of its windows."""

ROUNDING = 2.0**-53
STEP_OF_COVARIANCE = 4 * ROUNDING
STEP_OF_DISTANCE = 1 * ROUNDING
"""A step's error beside the product of the windows' lengths, or the largest squared distance. Measured on noise, random
walks, sines and drifts, a sum of 16384 of them is at most 0.1 to 0.5 of what follows from these, 1.2 where a period repeats
exactly, so that its roundings do too."""

FINER = ROUNDING * ROUNDING
"""A squared error in twice the precision, beside the plain one's."""

STRETCH = 64
"""Windows whose extremes are kept together."""


class Extremes(NamedTuple):
    """Of each STRETCH windows: the loudest and the quietest that counts, and the range of their means."""

    loudest: Floats
    quietest: Floats
    lowest: Floats
    highest: Floats


@njit(cache=True, nogil=True)
def set_scales(rows: Side, columns: Side) -> None:
    """Where distances are not normalised, windows are near beside the length of their deviations. A constant one has none:
    what is near to it is so beside the quietest other window of either side, or, where all are constant, their range."""
    floor = min(_quietest(rows), _quietest(columns))
    if floor == np.inf:
        lowest = min(rows.mean.min(), columns.mean.min())
        highest = max(rows.mean.max(), columns.mean.max())
        floor = (len(rows.values) - len(rows.norm) + 1) ** 0.5 * (highest - lowest)
    rows.scale[:] = np.maximum(rows.norm, floor)
    columns.scale[:] = np.maximum(columns.norm, floor)


@njit(nogil=True)
def _quietest(side: Side) -> float:
    """The least length of a window that counts and is not constant."""
    found = np.inf
    for i in range(len(side.norm)):
        if side.norm[i] > 0 and np.isfinite(side.z[i]):
            found = min(found, side.norm[i])
    return found


@njit(nogil=True)
def extremes(side: Side, normalize: bool) -> Extremes:
    """From a side."""
    count = len(side.norm)
    blocks = -(-count // STRETCH)
    found = Extremes(np.zeros(blocks), np.full(blocks, np.inf), np.full(blocks, np.inf), np.full(blocks, -np.inf))
    for i in range(count):
        k = i // STRETCH
        found.loudest[k] = max(found.loudest[k], side.norm[i])
        found.lowest[k] = min(found.lowest[k], side.mean[i])
        found.highest[k] = max(found.highest[k], side.mean[i])
        if np.isfinite(side.z[i]):
            found.quietest[k] = min(found.quietest[k], side.norm[i] if normalize else side.scale[i])
    return found


@njit(nogil=True)
def over(extremes: Extremes, start: int, stop: int) -> tuple[float, float, float, float]:
    """The extremes of windows start … stop-1, or some more."""
    loudest, quietest, lowest, highest = 0.0, np.inf, np.inf, -np.inf
    for k in range(max(0, start) // STRETCH, min(len(extremes.loudest), (stop - 1) // STRETCH + 1)):
        loudest = max(loudest, extremes.loudest[k])
        quietest = min(quietest, extremes.quietest[k])
        lowest = min(lowest, extremes.lowest[k])
        highest = max(highest, extremes.highest[k])
    return loudest, quietest, lowest, highest


@njit(nogil=True)
def outlook(
    rows: Extremes, columns: Extremes, i: int, i_stop: int, j: int, j_stop: int, m: int, normalize: bool
) -> tuple[float, float]:
    """The squared error of one step within some rows and columns, and the squared error that is still allowed there.

    Not normalised, a squared distance is at most the square of both lengths and what lies between the means; and at least
    what lies between the means and the difference of the lengths, so a near pair is as loud as the louder side's quietest.
    """
    loud, quiet, low, high = over(rows, i, i_stop)
    loud_too, quiet_too, low_too, high_too = over(columns, j, j_stop)
    if normalize:
        step, allowed = STEP_OF_COVARIANCE * loud * loud_too, quiet * quiet_too
    else:
        apart = max(high - low_too, high_too - low, 0.0) * m**0.5
        gap = max(low - high_too, low_too - high, 0.0) * m**0.5
        step, allowed = STEP_OF_DISTANCE * (loud + loud_too + apart) ** 2, max(quiet, quiet_too) ** 2 + gap**2
    allowed *= TOLERANCE
    return step * step, allowed * allowed
