"""The best neighbours within one tile."""

from typing import Any

import numpy as np

from workers.matrix_profile.profile import Bools, Floats
from workers.matrix_profile.tiles.bands import walk
from workers.matrix_profile.tiles.errors import set_scales
from workers.matrix_profile.tiles.kernel import BLOCK, ROWS
from workers.matrix_profile.tiles.side import side
from workers.matrix_profile.tiles.tile import Found, Work

_RUN_ON = np.zeros(1, np.bool_)


def compute(work: Work, stop: Bools | None = None) -> Found | None:
    """What in the tile is nearer than what `work` knows; None when stop[0] became true, within some 10 ms.

    Values: as treatment leaves them, near 1. Excluded: windows with missing samples and, where normalised, constant ones.
    Method: covariances (Zimmerman et al., SoCC 2019) or squared distances (AAMP, arXiv:1901.05708) along diagonals, their
    error followed and kept below TOLERANCE; near pairs measured. Limit: windows 1e-12 times as loud as others next to them.
    Pure, may run in several threads at once, and holds no lock of Python's while it computes.
    """
    tile, m = work.tile, work.m
    columns_stop = work.first_column + len(work.column_similarity)
    low = max(tile.row, work.first_column - tile.diagonal - tile.diagonals + 1)
    high = min(tile.row + tile.rows, columns_stop - tile.diagonal)
    if low >= high or not len(work.column_similarity):
        return _nothing()
    count, diagonals = high - low, tile.diagonals
    corner = low + tile.diagonal  # the column of the first row's first diagonal
    # Only the columns within reach, and so much around them that no pass ends halfway.
    first, end = max(corner, work.first_column), min(columns_stop, high + tile.diagonal + diagonals - 1)
    length = -(-count // ROWS) * ROWS + -(-diagonals // BLOCK) * BLOCK
    skip = low - tile.row
    row_values = _plain(work.row_values[skip : skip + count + m - 1])
    row_similarity = _plain(work.row_similarity[skip : skip + count])
    skip = first - work.first_column
    column_values = _plain(work.column_values[skip : skip + end - first + m - 1])
    column_similarity = _plain(work.column_similarity[skip : skip + end - first])
    rows = side(row_values, 1, ROWS - 1, m, work.normalize, row_similarity)
    before = 1 + first - corner
    columns = side(column_values, before, length - before + 1 - (end - first), m, work.normalize, column_similarity)
    if not work.normalize:
        set_scales(rows, columns)
    halt = _RUN_ON if stop is None else stop
    careful = walk(rows, columns, count, diagonals, before, before + end - first, m, work.normalize, halt)
    if careful < 0:
        return None
    r, r_best, r_near = _better(rows, 1, row_similarity)
    c, c_best, c_near = _better(columns, before, column_similarity)
    there = min(int(careful), tile.cells(columns_stop))  # it counts in whole bands, which stick out of the matrix
    return Found(low + r, r_best, corner - 1 + r_near, first + c, c_best, low - 1 + c_near, there)


def _plain(values: Any) -> Floats:
    """The one kind of array the kernel is compiled for; what another process sends may be read-only."""
    return np.require(values, np.float64, ["C", "W"])


def _better(side: Any, before: int, known: Any) -> tuple[Any, Any, Any]:
    """The windows with a neighbour, its similarity, and its number in the arrays."""
    part = slice(before, before + len(known))
    which = np.flatnonzero(side.neighbor[part] >= 0)
    return which, side.best[part][which], side.neighbor[part][which]


def _nothing() -> Found:
    none, zero = np.empty(0), np.empty(0, np.int64)
    return Found(zero, none, zero, zero, none, zero)
