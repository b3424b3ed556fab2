"""Matrix profiles, and what is made of them, by brute force in extended precision, written from the definitions alone.

Independent of STUMPY and of everything under test: every pair of windows is compared by itself, nothing is carried on.
Slow on purpose; meant for a few hundred samples.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class Truth:
    """The whole distance matrix (l, l_b) in extended precision, inf where a pair does not count, and what follows."""

    table: np.ndarray
    k: int
    self_join: bool

    @property
    def distances(self) -> np.ndarray:
        """float64 (l, k), ascending, inf where there is no further neighbour."""
        missing = max(0, self.k - self.table.shape[1])
        padded = np.pad(self.table, ((0, 0), (0, missing)), constant_values=np.inf)
        return np.sort(padded, axis=1)[:, : self.k].astype(np.float64)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Distance of each row to the neighbours named, (l,) or (l, k); inf for -1. Trivial pairs are inf too."""
        rows = np.arange(len(self.table)).reshape(-1, *([1] * (indices.ndim - 1)))
        found = self.table[rows, np.maximum(indices, 0)]
        return np.where(indices >= 0, found, np.inf).astype(np.float64)

    @property
    def left(self) -> np.ndarray:
        """Distance (l,) to the nearest earlier window; inf everywhere in an AB-join."""
        return self._side(lambda row, i: row[:i])

    @property
    def right(self) -> np.ndarray:
        return self._side(lambda row, i: row[i + 1 :])

    def _side(self, part) -> np.ndarray:
        if not self.self_join:
            return np.full(len(self.table), np.inf)
        return np.array([min(part(row, i), default=np.inf) for i, row in enumerate(self.table)], dtype=np.float64)


def matrix_profile(a, m: int, *, against=None, normalize: bool = True, p: float = 2.0, k: int = 1) -> Truth:
    """Each window of `a` against each of `against`, or of `a` itself outside the exclusion zone ⌈m/4⌉."""
    b = None if against is None else np.asarray(against, dtype=np.float64).tobytes()
    return Truth(_table(np.asarray(a, dtype=np.float64).tobytes(), b, m, normalize, p), k, against is None)


@lru_cache(maxsize=32)
def _table(a: bytes, b: bytes | None, m: int, normalize: bool, p: float) -> np.ndarray:
    left, right = _windows(np.frombuffer(a), m), _windows(np.frombuffer(a if b is None else b), m)
    distances = shape_distances if normalize else lambda x, others: norm_distances(x, others, p)
    table = np.array([distances(x, right) for x in left]).reshape(len(left), len(right))
    table[~np.isfinite(left).all(axis=1)] = np.inf
    table[:, ~np.isfinite(right).all(axis=1)] = np.inf
    for i in range(len(left)) if b is None else ():
        zone = math.ceil(m / 4)
        table[i, max(0, i - zone) : i + zone + 1] = np.inf
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class MultiTruth:
    """Distances (d, l, l) of each window to each other over its best 1 … d dimensions, inf where a pair does not count."""

    table: np.ndarray

    @property
    def distances(self) -> np.ndarray:
        return self.table.min(axis=2).astype(np.float64)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Distance (d, l) of each row to the neighbour named; inf for -1."""
        found = np.take_along_axis(self.table, np.maximum(indices, 0)[:, :, None], axis=2)[:, :, 0]
        return np.where(indices >= 0, found, np.inf).astype(np.float64)


def multidimensional_profile(
    series, m: int, *, include=(), discords: bool = False, normalize: bool = True, p: float = 2.0
) -> MultiTruth:
    """Row i: the mean distance over i+1 dimensions, first those of `include`, then the nearest (of discords, the farthest)."""
    apart = np.array([matrix_profile(each, m, normalize=normalize, p=p).table for each in series])
    include = list(include or ())
    rest = np.sort(np.delete(apart, include, axis=0), axis=0)
    ordered = np.concatenate([apart[include], rest[::-1] if discords else rest])
    means = np.array([ordered[: number + 1].sum(axis=0) / (number + 1) for number in range(len(ordered))])
    return MultiTruth(means)


def mpdist(
    a, b, m: int, *, percentage: float = 0.05, k: int | None = None, normalize: bool = True, p: float = 2.0
) -> float:
    """The k-th smallest, from 0, of both joins' distances; of what is not finite, the largest finite one before it."""
    joins = [matrix_profile(x, m, against=y, normalize=normalize, p=p).distances for x, y in ((a, b), (b, a))]
    values = np.sort(np.concatenate(joins)[:, 0])
    k = min(math.ceil(percentage * (len(a) + len(b))) if k is None else k, len(values) - 1)
    there = values[: k + 1][np.isfinite(values[: k + 1])]
    return float(there[-1]) if len(there) else math.inf


def radii(series, m: int, *, normalize: bool = True, p: float = 2.0) -> list[np.ndarray]:
    """For each series, each window's distance to its nearest in the other series, at worst; inf for a broken window."""
    return [
        np.max(
            [
                matrix_profile(each, m, against=other, normalize=normalize, p=p).distances[:, 0]
                for position, other in enumerate(series)
                if position != number
            ],
            axis=0,
        )
        for number, each in enumerate(series)
    ]


def shape_distances(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Euclidean distances of z-normalised windows; two constant ones are 0 apart, a constant and another sqrt(m)."""
    flat, flats = x.max() == x.min(), others.max(axis=1) == others.min(axis=1)
    apart = np.sqrt(((_standardised(others) - _standardised(x[None])) ** 2).sum(axis=1))
    apart[flats | flat] = np.sqrt(np.longdouble(len(x)))
    apart[flats & flat] = 0.0
    return apart


def norm_distances(x: np.ndarray, others: np.ndarray, p: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return (np.abs(others - x) ** np.longdouble(p)).sum(axis=1) ** (1 / np.longdouble(p))


def _standardised(windows: np.ndarray) -> np.ndarray:
    """Windows (r, m), each with mean 0 and deviation 1; what comes of a constant or broken one is not looked at."""
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = windows - windows[:, :1]  # exact where a window varies by a few ulps of its level
        centred = centred - centred.mean(axis=1, keepdims=True)
        centred = centred - centred.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True))


def _windows(series, m: int) -> np.ndarray:
    values = np.asarray(series, dtype=np.float64).astype(np.longdouble)
    return np.lib.stride_tricks.sliding_window_view(values, m)
