"""One profile through STUMPY's door: which function, with which keywords, in how many pieces.

Its calls can neither report nor stop. Work of more than half a second therefore goes through its distributed functions,
which accept any client whose class name starts with "Client": here ours computes one piece after the other, on a
cluster it spreads them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.matrix_profile.ground import PIECE_SECONDS, Ground, hearing, stumpys, threads
from workers.matrix_profile.profile import Floats, Profile, exclusion_zone

CELLS_PER_SECOND = 2e8  # z-normalised, a thread; the p-norm takes five times as long
MERGE_SECONDS_PER_WINDOW = 1e-6


@dataclass(frozen=True)
class Computed:
    """A profile, the function that made it, the number of pieces it was cut into, and the seconds it was expected to
    take on one thread of one worker (an estimate from its size, the same on every run)."""

    profile: Profile
    function: str
    pieces: int
    seconds: float


def compute(a: Floats, b: Floats | None, m: int, *, normalize: bool, p: float, k: int, ground: Ground) -> Computed:
    """The profile of `a` with itself, or of `a`'s windows in `b`.

    a: float64 (n,), b: float64 (n_b,) or None; non-finite values mask the windows they touch. p ≥ 1 counts only
    without normalisation. STUMPY: Law, J. Open Source Softw. 2019; z-normalised by STOMPopt (Zimmerman et al., SoCC
    2019), p-norm by AAMP (arXiv:1901.05708). Its rounding grows along a diagonal: see verify.py.
    """
    keywords: dict[str, Any] = {"k": k, "ignore_trivial": b is None} | ground.devices_asked(
        len(a if b is None else b) - m + 1
    )
    keywords |= {"normalize": True} if normalize else {"p": float(p)}
    seconds, pieces = plan(a, b, m, normalize=normalize, k=k, ground=ground)
    function = ground.function("matrix_profile", normalize=normalize, in_pieces=ground.in_pieces(pieces))
    with hearing(ground.report):
        found = stumpys(function)(*ground.first(pieces), a, m, T_B=b, **keywords)
    if not ground.in_pieces(pieces):
        ground.report.progress(1, 1, "pieces", 0.0)
    return Computed(_arrays(found, k), f"stumpy.{function}", pieces, seconds)


def plan(a: Floats, b: Floats | None, m: int, *, normalize: bool, k: int, ground: Ground) -> tuple[float, int]:
    """Expected seconds, and pieces of about half a second each, or more where merging would cost over a tenth."""
    rows, columns = len(a) - m + 1, len(a if b is None else b) - m + 1
    diagonals = columns - 1 - exclusion_zone(m) if b is None else rows + columns - 1
    cells = rows * columns / (2 if b is None else 1)
    cost = (1.0 if normalize else 5.0) * (1.0 + 0.1 * (k - 1))
    seconds = cells * cost / (CELLS_PER_SECOND * threads())
    longest = max(PIECE_SECONDS, 10 * MERGE_SECONDS_PER_WINDOW * rows * k)
    return seconds, ground.pieces(seconds, longest, diagonals)


def _arrays(found: Any, k: int) -> Profile:
    """STUMPY's table of Python objects as arrays."""
    numbers = np.asarray(found[:, k:], dtype=np.int64)
    distances = np.asarray(found[:, :k], dtype=np.float64)
    distances[np.isnan(distances)] = np.inf
    indices = np.where(np.isfinite(distances), numbers[:, :k], -1)
    distances[indices < 0] = np.inf
    return Profile(distances, indices, numbers[:, k].copy(), numbers[:, k + 1].copy())
