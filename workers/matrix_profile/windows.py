"""All windows of one series: which are whole, which are constant, and any of them as rows of a matrix."""

from functools import cached_property
from typing import Any

import numpy as np

from workers.matrix_profile.profile import Bools, Floats

BLOCK = 1 << 20
"""Samples gathered at once: 8 MiB, whatever the length of series and window."""


class Windows:
    """The windows of `m` samples of a float64 series (n,), l = n-m+1 of them.

    whole: bool (l,), no sample is NaN or infinite.  constant: bool (l,), whole and all samples equal.
    """

    def __init__(self, values: Floats, m: int) -> None:
        finite = np.isfinite(values)
        self.m = m
        self.values: Floats = np.where(finite, values, 0.0)
        self.whole: Bools = _none_of(~finite, m)
        self.constant: Bools = self.whole & _none_of(np.diff(self.values) != 0, m - 1)

    def __len__(self) -> int:
        return len(self.whole)

    def rows(self, which: Any) -> Floats:
        """The windows `which` (int64 (r,) or a slice) as float64 (r, m)."""
        view: Floats = np.lib.stride_tricks.sliding_window_view(self.values, self.m)[which]
        return view

    def shapes(self, which: Any) -> Floats:
        """The windows `which`, centred and of length 1, as float64 (r, m); zeros for a constant window.

        Each is scaled by its own power of two, taken from its first sample and centred twice, so neither a level of 1e9
        under a small signal, be it a few ulps, nor values of 1e160 or 1e-310 cost digits.
        """
        rows = self.rows(which)
        exponents = np.frexp(np.maximum(rows.max(axis=1), -rows.min(axis=1)))[1]
        shapes: Floats = rows * np.ldexp(1.0, -np.clip(exponents, -1022, 1022))[:, None]
        shapes -= shapes[:, :1].copy()  # a difference is rounded relative to itself, a mean relative to the level
        shapes -= shapes.mean(axis=1, keepdims=True)
        shapes -= shapes.mean(axis=1, keepdims=True)
        shapes[self.constant[which]] = 0.0
        lengths = np.sqrt(np.einsum("ij,ij->i", shapes, shapes))
        shapes /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return shapes

    @cached_property
    def scaled(self) -> Floats:
        """The series times the power of two that brings its largest value near 1: float64 (n,)."""
        return np.asarray(np.ldexp(self.values, -np.frexp(np.abs(self.values).max(initial=0.0))[1]))

    @cached_property
    def levels(self) -> Floats:
        """Each window's mean, of the scaled series: float64 (l,)."""
        return self._moments[0]

    @cached_property
    def spreads(self) -> Floats:
        """Each window's standard deviation, of the scaled series: float64 (l,), 0 where not whole or constant."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Levels and spreads, from differences to each window's first sample, which are exact where it varies little."""
        view = np.lib.stride_tricks.sliding_window_view(self.scaled, self.m)
        levels, spreads = np.empty(len(self)), np.empty(len(self))
        for part in blocks(len(self), self.m):
            first = view[part, 0]
            rest = view[part] - first[:, None]
            middle = rest.mean(axis=1)
            levels[part] = first + middle
            rest -= middle[:, None]
            rest -= rest.mean(axis=1, keepdims=True)
            spreads[part] = np.sqrt(np.einsum("ij,ij->i", rest, rest) / self.m)
        spreads[self.constant | ~self.whole] = 0.0
        return levels, spreads

    @cached_property
    def deviations(self) -> Floats:
        """The same in units of the largest."""
        largest = self.spreads.max(initial=0.0)
        return np.asarray(self.spreads / largest if largest > 0 else self.spreads)


def blocks(count: int, width: int) -> list[slice]:
    """Slices that cut `count` rows of `width` values into blocks of at most BLOCK values, at least one row each."""
    step = max(1, BLOCK // max(1, width))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _none_of(bad: Bools, m: int) -> Bools:
    """For each stretch of `m`, that none of it is bad."""
    counted = np.concatenate([[0], np.cumsum(bad)])
    clean: Bools = counted[m:] == counted[:-m]
    return clean
