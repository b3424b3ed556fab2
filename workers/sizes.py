"""How big a job is: the entries of distance matrices that it computes, and the memory that it takes. Pure arithmetic.

The names say whose: of a kind through STUMPY, or `tiled_`, by our own kernel. Each takes the params and the lengths of the job's
series in samples; memory, in bytes beyond the interpreter, also the computing process's threads.
"""

from collections.abc import Sequence
from typing import Final

from workers.contract import (
    ConsensusMotifParams,
    MatrixProfileParams,
    MpdistParams,
    MultidimensionalProfileParams,
    PanProfileParams,
)

Lengths = Sequence[int]
"""Samples of each series of a job, in the order of `Operation.series`."""

MIB: Final = 1 << 20
OBJECT_BYTES: Final = 40
"""A cell of STUMPY's answer: a pointer, and the Python number it points to."""
CHECK_BYTES: Final = 256 * MIB
"""What the checks of a result take on top."""


def windows(length: int, window: int) -> int:
    return max(0, length - window + 1)


def largest_pan_window(length: int) -> int:
    """The longest window a pan profile visits: `stumpy.core.get_max_window_size`. A longer one has hardly a neighbour
    that is not trivial."""
    return length - (length + 3) // 5 - 1


def pan_windows(params: PanProfileParams, length: int) -> range:
    """The windows of a pan profile, ascending."""
    last = params.max_window if params.max_window is not None else max(params.min_window, largest_pan_window(length))
    return range(params.min_window, last + 1, max(1, params.step))


def _self_join_cells(rows: int) -> float:
    return rows * (rows - 1) / 2


def _profile_bytes(rows: int, threads: int, k: int = 1) -> int:
    # STUMPY's per-thread profiles (16k+32 bytes a window), its dozen float64 arrays per series, the object array of its answer.
    return rows * (threads * (16 * k + 32) + 12 * 8 + (2 * k + 2) * OBJECT_BYTES) + CHECK_BYTES


def matrix_profile_cells(params: MatrixProfileParams, lengths: Lengths) -> float:
    rows = [windows(length, params.window) for length in lengths]
    return _self_join_cells(rows[0]) if len(rows) == 1 else float(rows[0]) * rows[1]


def matrix_profile_bytes(params: MatrixProfileParams, lengths: Lengths, threads: int) -> int:
    return _profile_bytes(max(windows(length, params.window) for length in lengths), threads, params.k)


def multidimensional_cells(params: MultidimensionalProfileParams, lengths: Lengths) -> float:
    return len(lengths) * float(windows(lengths[0], params.window)) ** 2


def multidimensional_bytes(params: MultidimensionalProfileParams, lengths: Lengths, threads: int) -> int:
    # Some twenty float64 arrays of (d, l): products even and odd, means, deviations, the profile, its pieces.
    return len(lengths) * windows(lengths[0], params.window) * 8 * 20 + CHECK_BYTES


def mpdist_cells(params: MpdistParams, lengths: Lengths) -> float:
    return 2.0 * windows(lengths[0], params.window) * windows(lengths[1], params.window)


def mpdist_bytes(params: MpdistParams, lengths: Lengths, threads: int) -> int:
    return _profile_bytes(max(windows(length, params.window) for length in lengths), threads)


def consensus_cells(params: ConsensusMotifParams, lengths: Lengths) -> float:
    rows = [windows(length, params.window) for length in lengths]
    return float(sum(a * b for a, b in zip(rows, [*rows[1:], rows[0]], strict=True)))


def consensus_bytes(params: ConsensusMotifParams, lengths: Lengths, threads: int) -> int:
    rows = [windows(length, params.window) for length in lengths]
    return _profile_bytes(max(rows), threads) + 6 * 8 * sum(rows)


def pan_cells(params: PanProfileParams, lengths: Lengths) -> float:
    # The sum of r(r - 1)/2 over the rows r of every window, in closed form: a long series has a hundred thousand windows.
    n, step = len(pan_windows(params, lengths[0])), max(1, params.step)
    most = windows(lengths[0], params.min_window)
    rows = n * most - step * n * (n - 1) // 2
    squares = n * most**2 - most * step * n * (n - 1) + step**2 * (n - 1) * n * (2 * n - 1) // 6
    return min(1.0, max(params.percentage, 0.0)) * (squares - rows) / 2


def pan_bytes(params: PanProfileParams, lengths: Lengths, threads: int) -> int:
    # STUMPY allocates (windows, n) float64 at once, and the raw profiles are copied out of it.
    visited = pan_windows(params, lengths[0])
    return 2 * 8 * len(visited) * lengths[0] + _profile_bytes(windows(lengths[0], params.min_window), threads)


# ---- the same on tiles ---------------------------------------------------------------------------------------------

TILE_BYTES: Final = 24 * MIB
"""What computing one tile takes, a thread: the series' stretches with all that follows from them, and what is found."""


def _tiled_bytes(rows: int, threads: int) -> int:
    # Series, windows' flags, best similarities and neighbours of both roles, distances, indices, what is written of them.
    return rows * 20 * 8 + threads * TILE_BYTES + CHECK_BYTES


def tiled_profile_bytes(params: MatrixProfileParams, lengths: Lengths, threads: int) -> int:
    return _tiled_bytes(sum(windows(length, params.window) for length in lengths), threads)


def tiled_mpdist_cells(params: MpdistParams, lengths: Lengths) -> float:
    return mpdist_cells(params, lengths) / 2  # both joins in one pass


def tiled_mpdist_bytes(params: MpdistParams, lengths: Lengths, threads: int) -> int:
    return _tiled_bytes(sum(windows(length, params.window) for length in lengths), threads)


def tiled_consensus_bytes(params: ConsensusMotifParams, lengths: Lengths, threads: int) -> int:
    rows = [windows(length, params.window) for length in lengths]
    return _tiled_bytes(2 * max(rows), threads) + 6 * 8 * sum(rows)


def tiled_pan_bytes(params: PanProfileParams, lengths: Lengths, threads: int) -> int:
    visited = pan_windows(params, lengths[0])
    return 2 * 8 * len(visited) * lengths[0] + _tiled_bytes(windows(lengths[0], params.min_window), threads)
