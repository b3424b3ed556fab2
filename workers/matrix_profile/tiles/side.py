"""One side of a tile, its rows or its columns: what the kernel reads of each window, and the best it found for it."""

from typing import NamedTuple

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.tiles.moments import filled, moments
from workers.matrix_profile.tiles.twofold import two_sum

PERFECT = 4e-16
"""Two windows nearer than this share of their lengths' product cannot be told from equal ones by their similarity."""

RESOLUTION = 1e-7
"""How far a distance that is not measured by itself may be off, in units of sqrt(m) (not normalised: of the windows' lengths),
but for a factor of 0.7."""


class Trust(NamedTuple):
    """What may be believed of a computed similarity in a tile.

    top: the similarity of equal windows.  margin: its largest error, beside the windows' scales.  zone: a similarity that
    lacks less than this to the top, beside the same, is measured from the samples: a distance of sqrt(2m·gap) is off by
    sqrt(m/2)·margin/sqrt(gap).
    """

    top: float
    margin: float
    zone: float


@njit(nogil=True)
def trust(normalize: bool, margin: float) -> Trust:
    """With an error of `margin`."""
    return Trust(1.0 if normalize else 0.0, margin, max((margin / RESOLUTION) ** 2, 100.0 * margin))


class Side(NamedTuple):
    """Arrays over windows, one more before the first and so many after the last that only whole passes exist.

    values: the samples, missing ones filled.  mean, mean_low: of each window, in twice the precision.  norm: length of its
    deviations.  scale: what a squared distance counts as near to, times the other side's: 1 where normalised, else from errors.set_scales.
    x, y, z: what a step of the recurrence takes. Normalised: half the difference of the sample that comes and the one that
    goes, the sum of their deviations, 1/norm (NaN where no neighbour is sought). Else: the sample that comes, the one that
    goes, 0 (inf where no neighbour is sought). x_low, y_low: what x and y lost by rounding.
    best, threshold, neighbor: similarity, what a similarity must exceed to count, and the other window's number.
    """

    values: Floats
    mean: Floats
    mean_low: Floats
    norm: Floats
    scale: Floats
    x: Floats
    y: Floats
    z: Floats
    x_low: Floats
    y_low: Floats
    best: Floats
    threshold: Floats
    neighbor: Ints


@njit(cache=True, nogil=True)
def side(values: Floats, before: int, after: int, m: int, normalize: bool, similarity: Floats) -> Side:
    """The side of the windows of `values`, with `before` and `after` missing ones around."""
    samples = before + len(values) + after
    count = samples - m + 1
    full, missing = np.empty(samples), np.empty(samples, np.bool_)
    filled(values, before, after, full, missing)
    mean, low, norm, whole = np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.bool_)
    moments(full, missing, m, mean, low, norm, whole)
    x, y, z, x_low, y_low = np.zeros(count), np.zeros(count), np.empty(count), np.zeros(count), np.zeros(count)
    if normalize:
        _deviations(full, m, mean, low, x, y, x_low, y_low)
        for i in range(count):
            z[i] = 1.0 / norm[i] if whole[i] and norm[i] > 0 else np.nan
    else:
        x[:] = full[m - 1 :]
        y[1:] = full[: count - 1]
        for i in range(count):
            z[i] = 0.0 if whole[i] else np.inf
    best, neighbor = np.full(count, np.inf), np.full(count, -1)
    best[before : before + len(similarity)] = similarity
    return Side(full, mean, low, norm, np.ones(count), x, y, z, x_low, y_low, best, best.copy(), neighbor)


@njit(nogil=True)
def _deviations(
    values: Floats, m: int, mean: Floats, low: Floats, x: Floats, y: Floats, x_low: Floats, y_low: Floats
) -> None:
    """x = (comes - goes)/2, y = (comes - mean) + (goes - mean before), each in twice the precision."""
    for i in range(1, len(mean)):
        comes, goes = values[i + m - 1], values[i - 1]
        d, d_low = two_sum(comes, -goes)
        x[i], x_low[i] = 0.5 * d, 0.5 * d_low
        a, a_low = two_sum(comes, -mean[i])
        b, b_low = two_sum(goes, -mean[i - 1])
        d, d_low = two_sum(a, b)
        y[i], y_low[i] = two_sum(d, d_low + (a_low - low[i]) + (b_low - low[i - 1]))


@njit(nogil=True)
def open_thresholds(side: Side, trust: Trust) -> None:
    """What a computed similarity must exceed: for windows with a near neighbour less than the best, by the error that
    could hide a nearer one; nothing where the best is as good as equal."""
    for i in range(len(side.best)):
        side.threshold[i] = lowered(side.best[i], side.scale[i] * side.scale[i], trust)


@njit(nogil=True)
def lowered(best: float, size: float, trust: Trust) -> float:
    """The threshold that belongs to a best similarity."""
    gap = trust.top - best
    if gap <= PERFECT * size:
        return np.inf
    return best - trust.margin * size if gap < trust.zone * size else best
