"""Which rows of a multidimensional profile the rounding of running sums may have spoilt.

STUMPY runs a sum on from row to row, in each dimension, uncentred. Its error is bounded by that of the largest sum it
passed, and what that does to a distance follows from the windows: nothing here is a sample.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workers.matrix_profile.dimensions import Dimensions, MultiProfile
from workers.matrix_profile.doubt import CORRELATION_TOLERANCE, EPS, PAIR_TOLERANCE
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.profile import Bools, Floats, Ints
from workers.matrix_profile.windows import Windows

STEPS: Final = 8
"""The error of one step of a running sum, at most, in eps of the largest it passed."""

PLACEMENT_TOLERANCE: Final = 1e-8
"""What two ways of adding up may differ by before they can name different neighbours that matter."""


@dataclass(frozen=True)
class Risk:
    """must: bool (l,), windows that may be wrong in earnest; whoever could miss them or be missed by them is right once
    these are computed anew and offered to all. may: int64, further rows, where the nearest two may be mistaken for
    each other by as much as PLACEMENT_TOLERANCE, most doubtful first; the first `earnest` by more than PAIR_TOLERANCE."""

    must: Bools
    may: Ints
    earnest: int


def risk(profile: MultiProfile, space: Dimensions, treated: list[Floats]) -> Risk:
    """profile: its distances exact for the pairs named.  treated: the series (n,) as STUMPY had them."""
    measure = space.measures[0]
    step = STEPS * EPS * math.sqrt(space.windows)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(measure, Norms):
            must, error, least = _of_norms(profile, space, measure.p, step)
        else:
            must, error, least = _of_shapes(profile, space, treated, step)
        doubt = error / (PLACEMENT_TOLERANCE * least)
    may = np.flatnonzero((doubt > 1.0) & ~must & np.isfinite(least))
    earnest = int(np.count_nonzero(doubt[may] > PAIR_TOLERANCE / PLACEMENT_TOLERANCE))
    return Risk(must, may[np.argsort(-doubt[may], kind="stable")], earnest)


def _of_shapes(
    profile: MultiProfile, space: Dimensions, treated: list[Floats], step: float
) -> tuple[Bools, Floats, Floats]:
    """A correlation is wrong by the error of a sum over both deviations: a pair is in doubt if one of them is small.

    Returns must; how far a distance of each other row may be off; and what that is relative to.
    """
    must, worst = np.zeros(space.windows, dtype=np.bool_), np.zeros(space.windows)
    for measure, values in zip(space.measures, treated, strict=True):
        windows = Windows(values, measure.a.m)
        varied = measure.a.whole & ~measure.a.constant  # as they came: treated, they may vary no more
        sum_error = step * float((windows.levels**2 + windows.spreads**2).max(initial=0.0))
        quiet = varied & (windows.spreads < math.sqrt(sum_error / CORRELATION_TOLERANCE))
        must |= quiet
        if (varied & ~quiet).any():
            least = windows.spreads[varied & ~quiet].min()
            worst = np.maximum(worst, np.where(varied, sum_error / (windows.spreads * least), 0.0))
    unit = space.unit
    error = np.minimum(unit * np.sqrt(2 * worst), unit**2 * worst / _floor(profile, space))
    return must, error, np.maximum(unit, profile.distances.min(axis=0))


def _of_norms(profile: MultiProfile, space: Dimensions, p: float, step: float) -> tuple[Bools, Floats, Floats]:
    """A distance to the power p is wrong by the error of a sum of such powers: a row is in doubt if it is small."""
    farthest = max(_farthest(measure) for measure in space.measures) or 1.0
    least = profile.distances.min(axis=0) / farthest
    floor = _floor(profile, space) / farthest
    must = np.isfinite(least) & (p * PAIR_TOLERANCE * least**p < step)
    error = np.full(len(least), step) if p == 1.0 else np.minimum(step ** (1 / p), step / (p * floor ** (p - 1)))
    return must, error, least


def _floor(profile: MultiProfile, space: Dimensions) -> Floats:
    """No window is nearer to each, in any one dimension: the nearest in the best one; nothing is known of that where
    other dimensions come first."""
    known = not len(space.include) and not space.discords
    return profile.distances[0] if known else np.zeros(space.windows)


def _farthest(measure: Any) -> float:
    return float(measure.farthest())
