"""Matrix profiles without a server: two functions, series in, profile out."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workers.failures import InvalidInput
from workers.matrix_profile.definition import Measure, Shapes
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.profile import Floats, Profile
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.check import check
from workers.matrix_profile.tiles.grid import CELLS_PER_SECOND
from workers.matrix_profile.tiles.hands import ThreadHands
from workers.matrix_profile.tiles.join import join
from workers.matrix_profile.treatment import Treated, treat
from workers.matrix_profile.windows import Windows
from workers.reporting import Silent


def self_join(T: ArrayLike, m: int, *, threads: int | None = None, normalize: bool = True) -> Profile:
    """Exact matrix profile of `T` with itself, k=1.

    T: (n,), numbers; windows with a non-finite value take no part.  m: window length in samples, 3 ≤ m ≤ n.  threads: all
    there are unless told.  normalize: z-normalised Euclidean distances, else Euclidean ones.  Returns distances float64
    (n-m+1, 1), inf where no neighbour exists; indices int64, -1 there; left and right, the nearest before and after.
    Exclusion zone ⌈m/4⌉; two constant windows are 0 apart, a constant and another sqrt(m).
    Method: see workers.matrix_profile.tiles.compute. Raises InvalidInput.
    """
    return _profile([_series(T, m, "T")], m, threads, normalize=normalize)


def ab_join(A: ArrayLike, B: ArrayLike, m: int, *, threads: int | None = None, normalize: bool = True) -> Profile:
    """Exact matrix profile of the windows of `A` in `B`; as above. left and right are -1."""
    return _profile([_series(A, m, "A"), _series(B, m, "B")], m, threads, normalize=normalize)


def scaled(series: Sequence[Floats], *, normalize: bool) -> Treated:
    """Series times powers of two that bring their largest values near 1, which changes no digit.

    Not centred, for that costs digits where a level is far from the mean, and the tiles need none of it. Each has a power of
    its own where normalised; else all have one.
    """
    if not normalize:
        return treat(series, normalize=False, p=2.0)
    largest = [np.abs(each[np.isfinite(each)]).max(initial=0.0) for each in series]
    exponents = [-int(np.frexp(each)[1]) for each in largest]
    done = [np.ldexp(each, exponent) for each, exponent in zip(series, exponents, strict=True)]
    return Treated(done, 0, {"centred": None, "scaled_by_two_to": exponents})


def _profile(series: list[Floats], m: int, threads: int | None, *, normalize: bool) -> Profile:
    threads = len(os.sched_getaffinity(0)) if threads is None else threads
    if threads < 1:
        raise InvalidInput(f"it takes at least one thread, not {threads}")
    treated, alone = scaled(series, normalize=normalize), len(series) == 1
    problem = Problem(*treated.joined, m, normalize, both=False)
    joined = join(problem, ThreadHands(threads), Silent(), threads=threads)
    profile = joined.profile
    profile.distances = treated.distances(profile.distances)
    seconds = joined.cells / (CELLS_PER_SECOND * threads)
    measure = _measure(*(Windows(each, m) for each in series), normalize=normalize)
    pairs = joined.pairs if normalize else None
    check(profile, measure, self_join=alone, seconds=seconds, report=Silent(), threads=threads, pairs=pairs)
    return profile


def _measure(a: Windows, b: Windows | None = None, *, normalize: bool) -> Measure:
    other = a if b is None else b
    return Shapes(a, other) if normalize else Norms(a, other, 2.0)


def _series(values: ArrayLike, m: int, name: str) -> Floats:
    """As float64 (n,). Raises InvalidInput where it is none, or has no window of `m`."""
    given: Any = np.asarray(values)
    if given.dtype.kind not in "fiub":
        raise InvalidInput(f"{name} must be numbers, not {given.dtype}")
    if given.ndim != 1:
        raise InvalidInput(f"{name} must be one series, (n,); it has the shape {given.shape}")
    done = np.ascontiguousarray(given, dtype=np.float64)
    if not isinstance(m, int | np.integer):
        raise InvalidInput(f"a window is a whole number of samples, not {m}")
    if m < 3:
        raise InvalidInput(f"a window has at least 3 samples, not {m}")
    if m > len(done):
        raise InvalidInput(f"a window of {m} samples does not fit into {name}, which has {len(done)}")
    return done
