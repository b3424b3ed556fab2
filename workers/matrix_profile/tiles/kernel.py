"""The loops that everything waits for: eight rows of a band of diagonals, in plain float64.

Why they are fast: the inner loop runs across neighbouring diagonals, where nothing depends on anything and every load is
contiguous; a covariance stays in its register for ROWS rows; and no profile is written, only whether a similarity exceeds
what its row or its column has, one flag for BLOCK diagonals. Improvements die out harmonically, so the blocks that have to
be done again, to record them, become rare.
"""

from numba import njit

from workers.matrix_profile.profile import Bools, Floats

BAND = 512
"""Diagonals walked at once: what a pass reads stays in the first-level cache."""

ROWS = 8
BLOCK = 64

FREE = {"contract", "reassoc", "nsz"}
"""What the compiler may do with the arithmetic; NaN and infinity keep their meaning."""


@njit(nogil=True, _nrt=False, fastmath=FREE)
def correlations(
    covariance: Floats, saved: Floats, flags: Bools, x: Floats, y: Floats, z: Floats, best: Floats,
    x_row: Floats, y_row: Floats, z_row: Floats, best_row: Floats,
) -> bool:  # fmt: skip
    """Carry the covariances (w,) of adjacent diagonals over ROWS rows. Columns' arrays (w+ROWS,), rows' (ROWS,).

    Method: Pearson correlation along diagonals (Zimmerman et al., SoCC 2019). saved: covariances as they were; flags: which
    blocks have a correlation above its row's or its column's.
    """
    any_hit = False
    for s in range(len(flags)):
        hit = False
        for v in range(BLOCK):
            w = s * BLOCK + v
            c = covariance[w]
            saved[w] = c
            for r in range(ROWS):
                c = c + x_row[r] * y[w + r] + x[w + r] * y_row[r]
                known = best[w + r] if best[w + r] < best_row[r] else best_row[r]
                hit = hit | (c * z[w + r] * z_row[r] > known)
            covariance[w] = c
        flags[s] = hit
        any_hit = any_hit | hit
    return any_hit


@njit(nogil=True, _nrt=False, fastmath=FREE)
def distances(
    covariance: Floats, saved: Floats, flags: Bools, x: Floats, y: Floats, z: Floats, best: Floats,
    x_row: Floats, y_row: Floats, z_row: Floats, best_row: Floats,
) -> bool:  # fmt: skip
    """The same for minus the squared Euclidean distance (AAMP, arXiv:1901.05708): one square comes, one goes."""
    any_hit = False
    for s in range(len(flags)):
        hit = False
        for v in range(BLOCK):
            w = s * BLOCK + v
            c = covariance[w]
            saved[w] = c
            for r in range(ROWS):
                comes = x_row[r] - x[w + r]
                goes = y_row[r] - y[w + r]
                c = c + goes * goes - comes * comes
                known = best[w + r] if best[w + r] < best_row[r] else best_row[r]
                hit = hit | (c - z[w + r] - z_row[r] > known)
            covariance[w] = c
        flags[s] = hit
        any_hit = any_hit | hit
    return any_hit


@njit(nogil=True, _nrt=False, fastmath=FREE)
def correlations_again(
    saved: Floats, found: Floats, x: Floats, y: Floats, z: Floats, x_row: Floats, y_row: Floats, z_row: Floats
) -> None:
    """One block of a pass again, from its saved covariances, keeping the correlations (ROWS·BLOCK,), row by row."""
    for w in range(BLOCK):
        c = saved[w]
        for r in range(ROWS):
            c = c + x_row[r] * y[w + r] + x[w + r] * y_row[r]
            found[r * BLOCK + w] = c * z[w + r] * z_row[r]


@njit(nogil=True, _nrt=False, fastmath=FREE)
def distances_again(
    saved: Floats, found: Floats, x: Floats, y: Floats, z: Floats, x_row: Floats, y_row: Floats, z_row: Floats
) -> None:
    """The same for minus the squared distances."""
    for w in range(BLOCK):
        c = saved[w]
        for r in range(ROWS):
            comes = x_row[r] - x[w + r]
            goes = y_row[r] - y[w + r]
            c = c + goes * goes - comes * comes
            found[r * BLOCK + w] = c - z[w + r] - z_row[r]
