"""The same steps in twice the precision, for stretches where the plain ones would lose a quiet window beside a loud one.

A covariance is kept as high + low, and everything a step takes as well; an error is then some 1e-32 of the loudest there,
so that windows 1e8 times quieter still have correlations right to rounding. Three to five times slower than plain.
"""

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Floats
from workers.matrix_profile.tiles.side import Side
from workers.matrix_profile.tiles.twofold import fma, square, two_product, two_sum


@njit(nogil=True, _nrt=False)
def start(
    high: Floats, low: Floats, width: int, rows: Side, columns: Side, i: int, j: int, m: int, normalize: bool
) -> None:
    """Covariances, or minus squared distances, of row `i` and the columns from `j` on, from their samples; NaN past `width`."""
    high[:] = 0.0
    low[:] = 0.0
    for t in range(m):
        if normalize:
            u, u_low = two_sum(rows.values[i + t], -rows.mean[i])
            u, u_low = two_sum(u, u_low - rows.mean_low[i])
            for w in range(len(high)):
                v, v_low = two_sum(columns.values[j + w + t], -columns.mean[j + w])
                v, v_low = two_sum(v, v_low - columns.mean_low[j + w])
                p, p_low = two_product(u, v)
                high[w], lost = two_sum(high[w], p)
                low[w] += lost + (p_low + (u * v_low + u_low * v))
        else:
            for w in range(len(high)):
                v, v_low = two_sum(rows.values[i + t], -columns.values[j + w + t])
                p, p_low = square(v, v_low)
                high[w], lost = two_sum(high[w], -p)
                low[w] += lost - p_low
    high[width:] = np.nan


@njit(nogil=True, _nrt=False)
def row(
    high: Floats, low: Floats, found: Floats, z: Floats, best: Floats, z_row: float, best_row: float, normalize: bool
) -> bool:
    """Similarities of a row as it is; says whether one is above its column's best or the row's."""
    hit = False
    for w in range(len(high)):
        similarity = (high[w] + low[w]) * z[w] * z_row if normalize else (high[w] + low[w]) - z[w] - z_row
        found[w] = similarity
        hit = hit | (similarity > best[w]) | (similarity > best_row)
    return hit


@njit(nogil=True, _nrt=False)
def correlation_row(
    high: Floats, low: Floats, found: Floats, x: Floats, y: Floats, x_low: Floats, y_low: Floats, z: Floats, best: Floats,
    x_row: float, y_row: float, x_row_low: float, y_row_low: float, z_row: float, best_row: float,
) -> bool:  # fmt: skip
    """Carry the covariances (w,) to one row; found: the correlations. Says whether one is above its column's or the row's."""
    hit = False
    for w in range(len(high)):
        p, p_low = two_product(x_row, y[w])
        q, q_low = two_product(y_row, x[w])
        p_low = fma(x_row, y_low[w], fma(x_row_low, y[w], p_low))
        q_low = fma(y_row, x_low[w], fma(y_row_low, x[w], q_low))
        step, lost = two_sum(p, q)
        c, more = two_sum(high[w], step)
        rest = low[w] + ((p_low + q_low) + (lost + more))
        high[w], low[w] = c, rest
        similarity = (c + rest) * z[w] * z_row
        found[w] = similarity
        hit = hit | (similarity > best[w]) | (similarity > best_row)
    return hit


@njit(nogil=True, _nrt=False)
def distance_row(
    high: Floats, low: Floats, found: Floats, x: Floats, y: Floats, z: Floats, best: Floats,
    x_row: float, y_row: float, z_row: float, best_row: float,
) -> bool:  # fmt: skip
    """The same for minus the squared distances."""
    hit = False
    for w in range(len(high)):
        comes, comes_low = two_sum(x_row, -x[w])
        goes, goes_low = two_sum(y_row, -y[w])
        p, p_low = square(comes, comes_low)
        q, q_low = square(goes, goes_low)
        step, lost = two_sum(q, -p)
        c, more = two_sum(high[w], step)
        rest = low[w] + ((q_low - p_low) + (lost + more))
        high[w], low[w] = c, rest
        similarity = (c + rest) - z[w] - z_row
        found[w] = similarity
        hit = hit | (similarity > best[w]) | (similarity > best_row)
    return hit
