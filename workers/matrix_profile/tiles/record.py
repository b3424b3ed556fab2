"""Writing down what exceeds a threshold; what seems nearly equal is measured first, sample by sample."""

from typing import NamedTuple

import numpy as np
from numba import njit

from workers.matrix_profile.profile import Bools, Floats, Ints
from workers.matrix_profile.tiles.kernel import BLOCK, ROWS, correlations_again, distances_again
from workers.matrix_profile.tiles.side import Side, Trust, lowered


class Marks(NamedTuple):
    """Which rows of a block found more than they know, and which found more than a column knows. bool (ROWS,)."""

    rows: Bools
    columns: Bools


@njit(nogil=True, _nrt=False)
def measured(rows: Side, columns: Side, i: int, j: int, m: int, normalize: bool) -> float:
    """The similarity of two windows, from their samples: what it lacks to the top is exact to rounding."""
    sums = (0.0, 0.0, 0.0, 0.0)  # four that need not wait for each other
    for t in range(0, m - 3, 4):
        sums = (
            sums[0] + apart(rows, columns, i, j, t, normalize),
            sums[1] + apart(rows, columns, i, j, t + 1, normalize),
            sums[2] + apart(rows, columns, i, j, t + 2, normalize),
            sums[3] + apart(rows, columns, i, j, t + 3, normalize),
        )
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    for t in range(m // 4 * 4, m):
        total += apart(rows, columns, i, j, t, normalize)
    return 1.0 - 0.5 * total if normalize else -total


@njit(nogil=True, _nrt=False)
def apart(rows: Side, columns: Side, i: int, j: int, t: int, normalize: bool) -> float:
    """The squared difference of the windows' samples `t`."""
    x, y = rows.values[i + t], columns.values[j + t]
    if normalize:
        x = ((x - rows.mean[i]) - rows.mean_low[i]) * rows.z[i]
        y = ((y - columns.mean[j]) - columns.mean_low[j]) * columns.z[j]
    difference: float = x - y
    return difference * difference


@njit(nogil=True, _nrt=False)
def improve(side: Side, i: int, j: int, similarity: float, trust: Trust) -> None:
    """Window `i` has found `j`."""
    if similarity > side.best[i]:
        side.best[i] = similarity
        side.neighbor[i] = j
        side.threshold[i] = lowered(similarity, side.scale[i] * side.scale[i], trust)


@njit(nogil=True, _nrt=False)
def record(found: Floats, rows: Side, columns: Side, i: int, j: int, m: int, normalize: bool, trust: Trust) -> None:
    """Of row i's similarities (w,) to the columns from `j` on, those that exceed what is known."""
    for w in range(len(found)):
        q = found[w]
        a = j + w
        if q > rows.threshold[i] or q > columns.threshold[a]:
            if trust.top - q < trust.zone * rows.scale[i] * columns.scale[a]:
                q = measured(rows, columns, i, a, m, normalize)
            improve(rows, i, a, q, trust)
            improve(columns, a, i, q, trust)


@njit(nogil=True, _nrt=False)
def redo(
    saved: Floats, found: Floats, marks: Marks, rows: Side, columns: Side,
    i: int, j: int, m: int, normalize: bool, trust: Trust,
) -> None:  # fmt: skip
    """A block of ROWS rows from `i` on, whose first columns start at `j`, again, recording."""
    e, f = j + BLOCK + ROWS, i + ROWS
    x, y, z = columns.x[j:e], columns.y[j:e], columns.z[j:e]
    if normalize:
        correlations_again(saved, found, x, y, z, rows.x[i:f], rows.y[i:f], rows.z[i:f])
    else:
        distances_again(saved, found, x, y, z, rows.x[i:f], rows.y[i:f], rows.z[i:f])
    scale, best = columns.scale[j:e], columns.threshold[j:e]
    if sift(found, marks, best, scale, rows.threshold[i:f], rows.scale[i:f], trust):
        for r in range(ROWS):
            record(found[r * BLOCK : (r + 1) * BLOCK], rows, columns, i + r, j + r, m, normalize, trust)
        return
    for r in range(ROWS):
        part = found[r * BLOCK : (r + 1) * BLOCK]
        a, e = j + r, j + r + BLOCK
        if marks.columns[r]:
            improve_all(part, i + r, columns.best[a:e], columns.threshold[a:e], columns.neighbor[a:e])
        if marks.rows[r]:
            w = largest(part)
            improve(rows, i + r, a + w, part[w], trust)


@njit(nogil=True, _nrt=False)
def largest(found: Floats) -> int:
    """Where the first of the largest similarities (w,) is; NaN is none."""
    best, where = -np.inf, 0
    for w in range(len(found)):
        if found[w] > best:
            best, where = found[w], w
    return where


@njit(nogil=True, _nrt=False)
def sift(
    found: Floats, marks: Marks, best: Floats, scale: Floats, best_row: Floats, scale_row: Floats, trust: Trust
) -> bool:
    """Set the marks of a block; says whether one is so near that it would have to be measured."""
    any_near = False
    for r in range(ROWS):
        row, column, near = False, False, False
        zone = trust.zone * scale_row[r]
        for w in range(BLOCK):
            q = found[r * BLOCK + w]
            row = row | (q > best_row[r])
            column = column | (q > best[w + r])
            near = near | (trust.top - q < zone * scale[w + r])
        marks.rows[r] = row
        marks.columns[r] = column
        any_near = any_near | near
    return any_near


@njit(nogil=True, _nrt=False)
def improve_all(found: Floats, i: int, best: Floats, threshold: Floats, neighbor: Ints) -> None:
    """Columns (BLOCK,) that have found row `i`, none of them so near that it would have to be measured."""
    for w in range(BLOCK):
        better = found[w] > best[w]
        best[w] = found[w] if better else best[w]
        threshold[w] = found[w] if better else threshold[w]
        neighbor[w] = i if better else neighbor[w]
