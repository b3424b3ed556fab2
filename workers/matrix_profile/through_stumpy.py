"""STUMPY through one door: which function, with which keywords, in how many pieces.

Its calls can neither report nor stop. Work of more than half a second therefore goes through its distributed functions,
which accept any client whose class name starts with "Client": ours computes one piece after the other right here.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numba
import numpy as np
import stumpy

from workers.matrix_profile.profile import Floats, Profile, exclusion_zone
from workers.reporting import Reporter

FUNCTIONS: Final = {True: ("stump", "stumped"), False: ("aamp", "aamped")}
"""normalize → STUMPY's function for the whole, and for pieces."""

CELLS_PER_SECOND = 2e8  # z-normalised, a thread; the p-norm takes five times as long
PIECE_SECONDS = 0.5
MERGE_SECONDS_PER_WINDOW = 1e-6

EXPECTED_WARNINGS: Final = (
    "The window size, 'm = ",  # we count the windows without a neighbour ourselves
    "A large number of values in `P` are smaller",
    "Arrays T_A, T_B are equal",  # asked for; the reporter says so in our words
    "divide by zero encountered",  # windows of one value have no deviation to divide by
    "invalid value encountered",
)


@dataclass(frozen=True)
class Computed:
    """A profile, the function that made it, the number of pieces it was cut into, and the seconds it was expected to
    take (an estimate from its size, the same on every run)."""

    profile: Profile
    function: str
    pieces: int
    seconds: float


def compute(a: Floats, b: Floats | None, m: int, *, normalize: bool, p: float, k: int, report: Reporter) -> Computed:
    """The profile of `a` with itself, or of `a`'s windows in `b`.

    a: float64 (n,), b: float64 (n_b,) or None; non-finite values mask the windows they touch. p ≥ 1 counts only
    without normalisation. STUMPY: Law, J. Open Source Softw. 2019; z-normalised by STOMPopt (Zimmerman et al., SoCC
    2019), p-norm by AAMP (arXiv:1901.05708). Its rounding grows along a diagonal: see verify.py.
    """
    whole, in_pieces = FUNCTIONS[normalize]
    keywords: dict[str, Any] = {"k": k, "ignore_trivial": b is None}
    keywords |= {"normalize": True} if normalize else {"p": float(p)}
    seconds, pieces = plan(a, b, m, normalize=normalize, p=p, k=k)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if pieces == 1:
            function, found = whole, getattr(stumpy, whole)(a, m, T_B=b, **keywords)
            report.progress(1, 1, "pieces", 0.0)
        else:
            function = in_pieces
            found = getattr(stumpy, in_pieces)(ClientHere(pieces, report), a, m, T_B=b, **keywords)
    for each in heard:
        if not str(each.message).startswith(EXPECTED_WARNINGS):
            report.warning(f"STUMPY: {each.message}")
    return Computed(_arrays(found, k), f"stumpy.{function}", pieces, seconds)


def plan(a: Floats, b: Floats | None, m: int, *, normalize: bool, p: float, k: int) -> tuple[float, int]:
    """Expected seconds, and pieces of about half a second each, or more where merging would cost over a tenth."""
    rows, columns = len(a) - m + 1, len(a if b is None else b) - m + 1
    diagonals = columns - 1 - exclusion_zone(m) if b is None else rows + columns - 1
    cells = rows * columns / (2 if b is None else 1)
    cost = (1.0 if normalize else 5.0) * (1.0 + 0.1 * (k - 1))
    seconds = cells * cost / (CELLS_PER_SECOND * int(numba.config.NUMBA_NUM_THREADS))
    longest = max(PIECE_SECONDS, 10 * MERGE_SECONDS_PER_WINDOW * rows * k)
    return seconds, max(1, min(math.ceil(seconds / longest), diagonals))


class ClientHere:
    """The cluster that is this process. STUMPY asks for results by number and merges each before it asks for the next,
    so a piece runs when it is asked for, and only two results are ever held."""

    def __init__(self, pieces: int, report: Reporter) -> None:
        self.pieces, self.report = pieces, report

    def ncores(self) -> dict[str, int]:
        return {f"piece {number}": 1 for number in range(self.pieces)}

    def scatter(self, data: Any, **where: Any) -> Any:
        return data

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        return partial(function, *arguments)

    def gather(self, pieces: Sequence[Callable[[], Any]]) -> "OneByOne":
        return OneByOne(pieces, self.report)


class OneByOne:
    """Results computed when they are first looked at, in order."""

    def __init__(self, pieces: Sequence[Callable[[], Any]], report: Reporter) -> None:
        self.pieces, self.report, self.started = pieces, report, time.monotonic()

    def __getitem__(self, number: int) -> Any:
        result = self.pieces[number]()
        done, total = number + 1, len(self.pieces)
        self.report.progress(done, total, "pieces", (time.monotonic() - self.started) / done * (total - done))
        return result


def _arrays(found: Any, k: int) -> Profile:
    """STUMPY's table of Python objects as arrays."""
    numbers = np.asarray(found[:, k:], dtype=np.int64)
    distances = np.asarray(found[:, :k], dtype=np.float64)
    distances[np.isnan(distances)] = np.inf
    indices = np.where(np.isfinite(distances), numbers[:, :k], -1)
    distances[indices < 0] = np.inf
    return Profile(distances, indices, numbers[:, k].copy(), numbers[:, k + 1].copy())
