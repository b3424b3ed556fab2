"""The loops that numpy is too slow for: a few windows against all windows of a series, each pair by itself.

Nothing runs on from pair to pair. The order of a sum is left to the compiler, which lets it use vectors.
"""

from typing import Any

from numba import njit

from workers.matrix_profile.profile import Floats


def _correlations(shapes: Floats, values: Floats, levels: Floats, lengths: Floats, found: Floats) -> None:
    """found[i, j] = shapes[i] · (values[j : j+m] - levels[j]) / lengths[j].

    Each product is taken from values near zero, so its error is relative to its own window.
    """
    m = shapes.shape[1]
    for i in range(shapes.shape[0]):
        for j in range(len(levels)):
            total = 0.0
            level = levels[j]
            for k in range(m):
                total += shapes[i, k] * (values[j + k] - level)
            found[i, j] = total / lengths[j]


def _norms(windows: Floats, values: Floats, p: float, found: Floats) -> None:
    """found[i, j] = the p-norm of windows[i] - values[j : j+m], all finite; scaled by its largest difference, so that no
    power over- or underflows."""
    m = windows.shape[1]
    whole = int(p) if p == int(p) and p <= 6 else 0
    for i in range(windows.shape[0]):
        for j in range(found.shape[1]):
            largest = 0.0
            for k in range(m):
                largest = max(largest, abs(windows[i, k] - values[j + k]))
            total = 0.0
            if largest == 0.0:
                total = 0.0
            elif whole == 1:
                for k in range(m):
                    total += abs(windows[i, k] - values[j + k]) / largest
            elif whole == 2:
                for k in range(m):
                    size = (windows[i, k] - values[j + k]) / largest
                    total += size * size
            elif whole == 3:
                for k in range(m):
                    size = abs(windows[i, k] - values[j + k]) / largest
                    total += size * size * size
            elif whole > 3:
                for k in range(m):
                    size = abs(windows[i, k] - values[j + k]) / largest
                    power = size
                    for _ in range(whole - 1):
                        power *= size
                    total += power
            else:
                for k in range(m):
                    total += (abs(windows[i, k] - values[j + k]) / largest) ** p
            found[i, j] = largest * total ** (1.0 / p)


def _best_means(apart: Floats, first: int, farthest: bool) -> None:
    """Turn each column's distances (d,) into their means over 1 … d of them: the `first` ones as they come, then the
    rest in ascending order, or from the `farthest` on. Each is divided before it is added, so that no sum overflows."""
    count, columns = apart.shape
    sign = -1.0 if farthest else 1.0
    for j in range(columns):
        for q in range(first + 1, count):
            value = apart[q, j]
            place = q
            while place > first and sign * apart[place - 1, j] > sign * value:
                apart[place, j] = apart[place - 1, j]
                place -= 1
            apart[place, j] = value
        total = 0.0
        for q in range(count):
            total += apart[q, j] / count
            apart[q, j] = total / ((q + 1) / count)


best_means: Any = njit(cache=True)(_best_means)
correlations: Any = njit(cache=True, fastmath={"reassoc", "contract", "nsz"})(_correlations)
norms: Any = njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})(_norms)
