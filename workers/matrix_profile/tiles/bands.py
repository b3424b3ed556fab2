"""Walking a tile, band by band of diagonals, in the gear that each stretch of rows needs.

A tile whose loudest and quietest windows are near enough goes plainly throughout, restarted every RESTART rows. Else each
CHUNK of rows goes on plainly while the error stays small beside the quietest windows there, restarts exactly where it would
not, and where that is not enough goes carefully. Where even that would not do, each of its rows is computed afresh.
"""

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Bools, Floats
from workers.matrix_profile.tiles import careful
from workers.matrix_profile.tiles.errors import FINER, TOLERANCE, extremes, outlook
from workers.matrix_profile.tiles.kernel import BAND, BLOCK, ROWS, correlations, distances
from workers.matrix_profile.tiles.record import Marks, record, redo
from workers.matrix_profile.tiles.side import Side, Trust, open_thresholds, trust

RESTART = 16384
"""Rows after which a covariance is computed afresh, whatever its error."""

CHUNK = 256
"""Rows for which a gear is chosen, where one choice does not do for the whole tile."""


@njit(cache=True, nogil=True)
def walk(
    rows: Side, columns: Side, count: int, diagonals: int, first: int, stop: int, m: int, normalize: bool, halt: Bools
) -> int:
    """Compare `count` rows with their columns on `diagonals` diagonals; only columns [first, stop) exist.

    Index 0 of every array is the window before the first, and column i + d is on diagonal d of row i. Writes the sides'
    best and neighbor. Returns how many cells were computed carefully, -1 when `halt` ended it.
    """
    loud_rows, loud_columns = extremes(rows, normalize), extremes(columns, normalize)
    step, allowed = outlook(loud_rows, loud_columns, 0, len(rows.norm), 0, len(columns.norm), m, normalize)
    error = step * (m + min(count, RESTART))
    ordinary = error <= allowed
    relied = trust(normalize, TOLERANCE * (error / allowed) ** 0.5 if ordinary and error > 0 else TOLERANCE)
    open_thresholds(rows, relied)
    open_thresholds(columns, relied)
    high, low, saved, found = np.empty(BAND), np.empty(BAND), np.empty(BAND), np.empty(BLOCK * ROWS)
    flags = np.zeros(BAND // BLOCK, np.bool_)
    marks = Marks(np.zeros(ROWS, np.bool_), np.zeros(ROWS, np.bool_))
    careful_cells = 0
    for d in range(0, diagonals, BAND):
        width = min(BAND, diagonals - d)
        span = -(-width // BLOCK) * BLOCK
        covariance, rest = high[:span], low[:span]
        i = 1 + max(0, first - d - width) // ROWS * ROWS
        last = min(count, stop - 1 - d)
        exact, steps = False, 0
        error, fine = np.inf, np.inf
        while i <= last:
            if halt[0]:
                return -1
            end = min(i + (RESTART if ordinary else CHUNK), last + 1)
            if not ordinary:
                step, allowed = outlook(loud_rows, loud_columns, i - 1, end, i - 1 + d, end + d + span, m, normalize)
            ahead = step * (end - i)
            steps += end - i
            if error + ahead > allowed or steps > RESTART:
                if step * m + ahead <= allowed:
                    start(covariance, width, rows, columns, i - 1, i - 1 + d, m, normalize)
                    error, steps = step * m, end - i
                    exact = False
                elif not exact:
                    exact, fine = True, np.inf
            elif exact:
                covariance += rest
                exact = False
            if exact:
                careful_cells += (end - i) * width
                if fine + ahead * FINER > allowed:
                    careful.start(covariance, rest, width, rows, columns, i - 1, i - 1 + d, m, normalize)
                    fine = step * FINER * m
                fine += ahead * FINER
                afresh = fine > allowed
                carefully(covariance, rest, found[:span], width, rows, columns, i, end, d, m, normalize, relied, afresh)
                error = step
            else:
                plainly(
                    covariance, saved, found, flags[: span // BLOCK], marks, rows, columns, i, end, d, m, normalize, relied
                )  # fmt: skip
                error += ahead
            i += -(-(end - i) // ROWS) * ROWS
    return careful_cells


@njit(nogil=True, _nrt=False)
def plainly(
    covariance: Floats, saved: Floats, found: Floats, flags: Bools, marks: Marks, rows: Side, columns: Side,
    i: int, end: int, d: int, m: int, normalize: bool, relied: Trust,
) -> None:  # fmt: skip
    """Rows i … end-1 of a band, in float64."""
    length = len(covariance) + ROWS
    while i < end:
        j = i + d
        e, f = j + length, i + ROWS
        x, y, z, best = columns.x[j:e], columns.y[j:e], columns.z[j:e], columns.threshold[j:e]
        if normalize:
            hit = correlations(
                covariance, saved, flags, x, y, z, best, rows.x[i:f], rows.y[i:f], rows.z[i:f], rows.threshold[i:f]
            )
        else:
            hit = distances(
                covariance, saved, flags, x, y, z, best, rows.x[i:f], rows.y[i:f], rows.z[i:f], rows.threshold[i:f]
            )
        if hit:
            for s in range(len(flags)):
                if flags[s]:
                    a = s * BLOCK
                    redo(saved[a : a + BLOCK], found, marks, rows, columns, i, j + a, m, normalize, relied)
        i += ROWS


@njit(nogil=True, _nrt=False)
def carefully(
    high: Floats, low: Floats, found: Floats, width: int, rows: Side, columns: Side,
    i: int, end: int, d: int, m: int, normalize: bool, relied: Trust, afresh: bool,
) -> None:  # fmt: skip
    """Rows i … end-1 of a band, in twice the precision; a whole number of passes as the plain gear makes. afresh: each by itself."""
    for k in range(i, i + -(-(end - i) // ROWS) * ROWS):
        j = k + d
        e = j + len(high)
        x, y, z, best = columns.x[j:e], columns.y[j:e], columns.z[j:e], columns.threshold[j:e]
        if afresh:
            careful.start(high, low, width, rows, columns, k, j, m, normalize)
            hit = careful.row(high, low, found, z, best, rows.z[k], rows.threshold[k], normalize)
        elif normalize:
            hit = careful.correlation_row(
                high, low, found, x, y, columns.x_low[j:e], columns.y_low[j:e], z, best,
                rows.x[k], rows.y[k], rows.x_low[k], rows.y_low[k], rows.z[k], rows.threshold[k],
            )  # fmt: skip
        else:
            hit = careful.distance_row(
                high, low, found, x, y, z, best, rows.x[k], rows.y[k], rows.z[k], rows.threshold[k]
            )
        if hit:
            record(found, rows, columns, k, j, m, normalize, relied)


@njit(nogil=True, _nrt=False)
def start(covariance: Floats, width: int, rows: Side, columns: Side, i: int, j: int, m: int, normalize: bool) -> None:
    """Covariances (or minus squared distances) of row `i` and the columns from `j` on, from their samples; NaN past `width`,
    so that diagonals of the next tile never count here."""
    covariance[:] = 0.0
    for t in range(m):
        if normalize:
            u = (rows.values[i + t] - rows.mean[i]) - rows.mean_low[i]
            for w in range(width):
                covariance[w] += u * ((columns.values[j + w + t] - columns.mean[j + w]) - columns.mean_low[j + w])
        else:
            u = rows.values[i + t]
            for w in range(width):
                v = u - columns.values[j + w + t]
                covariance[w] -= v * v
    covariance[width:] = np.nan
