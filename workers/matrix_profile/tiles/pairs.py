"""Distances of pairs of windows, each from its own two windows, and looking through all windows for a nearer one.

The same definitions as in workers.matrix_profile.definition, compiled, and some ten times faster. Nothing runs on from
pair to pair.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from workers.matrix_profile.profile import Bools, Floats, Ints
from workers.matrix_profile.tiles.loops import norm_pairs, shape_pairs, standards
from workers.matrix_profile.tiles.near import near_norms, near_shapes
from workers.matrix_profile.windows import Windows

CHUNK: Final = 1 << 14
"""Windows or pairs taken at a stretch: about a millisecond."""


class Shapes(NamedTuple):
    """What makes each window of a series (l of them) one of mean 0 and length 1: sample v becomes
    ((v - first sample) · factor - middle) · inverse. float64 (l,) each; inverse is 0 where all samples are equal."""

    factor: Floats
    middle: Floats
    inverse: Floats


class Ready:
    """The windows of a series, ready to be compared. values: float64 (n,), scaled by a power of two where normalised."""

    def __init__(self, windows: Windows, *, normalize: bool, threads: int) -> None:
        self.windows, self.m, self.threads = windows, windows.m, threads
        self.whole: Bools = windows.whole
        self.constant: Bools = windows.constant & normalize
        self.values: Floats = windows.scaled if normalize else windows.values

    def __len__(self) -> int:
        return len(self.whole)

    @cached_property
    def shapes(self) -> Shapes:
        shapes = Shapes(*(np.empty(len(self)) for _ in range(3)))

        def fill(part: slice) -> None:
            samples = self.values[part.start : part.stop + self.m - 1]
            standards(samples, self.m, *(each[part] for each in shapes))

        in_parts(fill, len(self), self.threads)
        return shapes


class Pairs:
    """The z-normalised (or else the plain) Euclidean distance between windows of `a` and windows of `b`."""

    def __init__(self, a: Ready, b: Ready, *, normalize: bool) -> None:
        self.a, self.b, self.normalize = a, b, normalize

    @classmethod
    def of(cls, a: Windows, b: Windows, *, normalize: bool, threads: int = 1) -> "Pairs":
        one = Ready(a, normalize=normalize, threads=threads)
        return cls(one, one if a is b else Ready(b, normalize=normalize, threads=threads), normalize=normalize)

    def transposed(self) -> "Pairs":
        return Pairs(self.b, self.a, normalize=self.normalize)

    def distances(self, i: Ints, j: Ints) -> Floats:
        """Window i of `a` to window j of `b`, one by one: float64 (r,); inf where one is not whole or there is none."""
        a, b, found = self.a, self.b, np.empty(len(i))
        both = (a.shapes, b.shapes) if self.normalize else None

        def fill(part: slice) -> None:
            samples, some = (a.values, b.values, a.m), (i[part], j[part], found[part])
            if both is None:
                norm_pairs(*samples, a.whole, b.whole, *some)
            else:
                shape_pairs(*samples, *both, a.whole, b.whole, a.constant, b.constant, *some)

        in_parts(fill, len(i), a.threads)
        return found

    def similarities(self, i: Ints, j: Ints) -> Floats:
        """The same as tiles have it: correlations, or minus the squared distances."""
        squares = self.distances(i, j) ** 2
        return np.asarray(1.0 - squares / (2 * self.a.m) if self.normalize else -squares)

    def nearer(self, i: int, first: int, stop: int, than: float) -> tuple[float, int]:
        """The nearest of the windows [first, stop) of `b` and its distance to window i of `a`, if below `than`; else
        `than` itself, and -1."""
        a, b, maybe = self.a, self.b, np.empty(max(0, stop - first), dtype=np.int64)
        if first >= stop or than == 0.0 or not a.whole[i]:
            return than, -1
        window, than = a.values[i : i + a.m], float(than)
        if self.normalize:
            shape = ((window - window[0]) * a.shapes.factor[i] - a.shapes.middle[i]) * a.shapes.inverse[i]
            limit, flat = 1.0 - than * than / (2 * a.m), bool(a.constant[i])
            count = near_shapes(shape, flat, b.values, b.shapes, b.whole, b.constant, first, stop, limit, maybe)
        else:
            count = near_norms(window, b.values, b.whole, first, stop, than * than, maybe)
        if not count:
            return than, -1
        apart = self.distances(np.full(count, i), maybe[:count])
        best = int(apart.argmin())
        return (float(apart[best]), int(maybe[best])) if apart[best] < than else (than, -1)


def in_parts(call: Callable[[slice], None], count: int, threads: int) -> None:
    """Call with slices that make up [0, count), on several threads where it is worth it."""
    parts = [slice(start, min(count, start + CHUNK)) for start in range(0, count, CHUNK)]
    if threads == 1 or len(parts) < 2:
        for part in parts:
            call(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(call, parts))


def pair_seconds(m: int) -> float:
    """What measuring a pair takes, about."""
    return 4e-8 + 2e-10 * m
