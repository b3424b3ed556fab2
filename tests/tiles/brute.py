"""One tile of a distance matrix by brute force in extended precision, from the definitions; and work for the kernel."""

import numpy as np

from workers.matrix_profile.tiles.tile import Found, Work


def work(a, b, m, tile, *, normalize=True, row_similarity=None, column_similarity=None) -> Work:
    l_b = len(b) - m + 1
    first, stop = tile.columns(l_b)
    stop = max(first, stop)
    none = np.full(max(len(a), len(b)), -np.inf)
    rows = (none if row_similarity is None else row_similarity)[tile.row : tile.row + tile.rows]
    columns = (none if column_similarity is None else column_similarity)[first:stop]
    values = (np.asarray(a, float)[tile.row : tile.row + tile.rows + m - 1], np.asarray(b, float)[first : stop + m - 1])
    copies = (np.ascontiguousarray(x) for x in (*values, rows, columns))
    return Work(tile, m, normalize, first, *copies)


def windows(values, m):
    return np.lib.stride_tricks.sliding_window_view(np.asarray(values, dtype=np.longdouble), m)


def shapes(values, m):
    """Windows with mean 0 and length 1; NaN where constant or not whole."""
    rows = windows(values, m)
    with np.errstate(all="ignore"):
        rows = rows - rows[:, :1]
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows - rows.mean(axis=1, keepdims=True)
        return rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))


def distances(x, others, m, normalize):
    """Of one window to others, NaN where one does not count; `shapes` where normalised, else `windows`."""
    with np.errstate(all="ignore"):
        return np.sqrt(((others - x) ** 2).sum(axis=1) * (m if normalize else 1))


def table(a, b, m, normalize):
    """All distances (l_a, l_b), inf where a pair does not count."""
    left, right = (shapes(a, m), shapes(b, m)) if normalize else (windows(a, m), windows(b, m))
    found = np.array([distances(x, right, m, normalize) for x in left]).reshape(len(left), len(right))
    found[~np.isfinite(found)] = np.inf
    return found


def within(tile, l_a, l_b):
    """Which pairs a tile holds, bool (l_a, l_b)."""
    i, j = np.arange(l_a)[:, None], np.arange(l_b)[None, :]
    inside = (i >= tile.row) & (i < tile.row + tile.rows)
    return inside & (j - i >= tile.diagonal) & (j - i < tile.diagonal + tile.diagonals)


def assert_found(found: Found, distance, m, normalize, near=1e-9):
    """`found` names for every row and column with a neighbour in `distance` (l_a, l_b) one as near as any."""
    sides = (
        (found.rows, found.row_similarity, found.row_neighbors, distance),
        (found.columns, found.column_similarity, found.column_neighbors, distance.T),
    )
    for which, similarity, neighbor, apart in sides:
        best = apart.min(axis=1, initial=np.inf)
        np.testing.assert_array_equal(which, np.flatnonzero(np.isfinite(best)))
        truth = best[which].astype(float)
        np.testing.assert_allclose(apart[which, neighbor].astype(float), truth, rtol=1e-9, atol=near)
        squared = 2 * m * (1 - similarity) if normalize else -similarity
        named = np.where(np.isinf(similarity), 0.0, np.maximum(squared, 0.0)) ** 0.5
        np.testing.assert_allclose(named, truth, rtol=1e-6, atol=1e-6 if normalize else near)
