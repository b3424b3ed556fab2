"""Means and lengths of all windows of a series, in O(n), exact to rounding whatever the level and the loudest part.

Sums slide from window to window in twice the precision, around a centre. Where what is left is too small beside what went
through the sum, it starts again at that window, around the window's own mean.
"""

from numba import njit

from workers.matrix_profile.profile import Bools, Floats
from workers.matrix_profile.tiles.twofold import square, two_product, two_sum

FADED = 1e-13
"""A squared length below this share of the largest that the sliding sum has held is taken anew: it lost digits."""


@njit(cache=True, nogil=True)
def filled(values: Floats, before: int, after: int, out: Floats, missing: Bools) -> None:
    """The values with `before` and `after` missing ones around them; a missing sample repeats the one before it, the
    first ones the first that is there. out: float64 (before+n+after,), missing: bool, the same."""
    level = 0.0
    for value in values:
        if abs(value) < float("inf"):
            level = value
            break
    for t in range(len(out)):
        source = t - before
        missing[t] = True
        if 0 <= source < len(values) and abs(values[source]) < float("inf"):
            level = values[source]
            missing[t] = False
        out[t] = level


@njit(cache=True, nogil=True)
def _anew(values: Floats, start: int, m: int) -> tuple[float, float, float, float, float]:
    """A centre, the mean of a window, and the sums of deviations and squared deviations from it, high and low."""
    first = values[start]
    total = 0.0
    for t in range(start, start + m):
        total += values[t] - first
    centre = first + total / m
    s, s_low, q, q_low = 0.0, 0.0, 0.0, 0.0
    for t in range(start, start + m):
        c, c_low = two_sum(values[t], -centre)
        s, lost = two_sum(s, c)
        s_low += lost + c_low
        p, p_low = square(c, c_low)
        q, lost = two_sum(q, p)
        q_low += lost + p_low
    return centre, s, s_low, q, q_low


@njit(cache=True, nogil=True)
def moments(values: Floats, missing: Bools, m: int, mean: Floats, low: Floats, norm: Floats, whole: Bools) -> None:
    """For each window of `m` of the filled values (n,): the mean as mean + low, the length of its deviations from the mean
    (0 exactly where it is constant), and whether no sample is missing. All (n-m+1,)."""
    centre, s, s_low, q, q_low = _anew(values, 0, m)
    peak = q
    gone = -1
    equal = 0
    for t in range(m - 1):
        if missing[t]:
            gone = t
        equal = equal + 1 if t > 0 and values[t] == values[t - 1] else 0
    for i in range(len(mean)):
        newest = i + m - 1
        if missing[newest]:
            gone = newest
        equal = equal + 1 if newest > 0 and values[newest] == values[newest - 1] else 0
        whole[i] = gone < i
        if i > 0:
            a, a_low = two_sum(values[newest], -centre)
            b, b_low = two_sum(values[i - 1], -centre)
            d, d_low = two_sum(a, -b)
            s, lost = two_sum(s, d)
            s_low += lost + d_low + (a_low - b_low)
            a, a_low = square(a, a_low)
            b, b_low = square(b, b_low)
            d, d_low = two_sum(a, -b)
            q, lost = two_sum(q, d)
            q_low += lost + d_low + (a_low - b_low)
            peak = max(peak, max(q, a))
        squared, shift, shift_low = _spread(s, s_low, q, q_low, m)
        if squared < FADED * peak and equal < m - 1:
            centre, s, s_low, q, q_low = _anew(values, i, m)
            peak = q
            squared, shift, shift_low = _spread(s, s_low, q, q_low, m)
        high, lost = two_sum(centre, shift)
        mean[i], low[i] = two_sum(high, lost + shift_low)
        norm[i] = squared**0.5 if squared > 0 else 0.0
        if equal >= m - 1:
            mean[i], low[i], norm[i] = values[i], 0.0, 0.0


@njit(nogil=True)
def _spread(s: float, s_low: float, q: float, q_low: float, m: int) -> tuple[float, float, float]:
    """q - s²/m, and s/m high and low."""
    s, s_low = two_sum(s, s_low)
    shift, shift_low = _divided(s, s_low, m)
    p, p_low = square(s, s_low)
    p, p_low = _divided(p, p_low, m)
    high, lost = two_sum(q, -p)
    return high + (lost + q_low - p_low), shift, shift_low


@njit(nogil=True)
def _divided(high: float, low: float, m: int) -> tuple[float, float]:
    """(high + low) / m."""
    quotient = high / m
    back, back_low = two_product(quotient, float(m))
    return quotient, ((high - back) - back_low + low) / m
