"""How far distances are from a brute force in extended precision, on series that are hard for running sums: tiles, STUMPY, SCAMP.

python -m tests.bench_accuracy
"""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from workers.environment import compute_environment

os.environ.update(compute_environment(2))
sys.path.append(os.path.join(sys.prefix, "peers"))

import numpy as np

from workers.matrix_profile.tiles import self_join

M: Final = 50
N: Final = 4000
LONG: Final = 200_000
ROWS: Final = 12
"""Rows of each series that are compared: at random, and evenly."""

rng = np.random.default_rng(5)


def noise(n: int = N) -> Any:
    return rng.standard_normal(n)


def burst() -> Any:
    series = noise()
    series[N // 2 : N // 2 + 20] *= 1e8
    return series


def sentinel() -> Any:
    series = noise()
    series[N // 3] = 999_999_999
    return series


def quietened() -> Any:
    return noise() * np.where(np.arange(N) < N // 2, 1.0, 1e-7)


SERIES: Final[dict[str, Callable[[], Any]]] = {
    "a random walk": lambda: noise().cumsum(),
    "noise on an offset of 1e9": lambda: noise() + 1e9,
    "noise of amplitude 1e-8": lambda: noise() * 1e-8,
    "a drift of 200,000 points, from 0 to 1e6": lambda: noise(LONG) + np.linspace(0, 1e6, LONG),
    "noise with a burst of 1e8": burst,
    "noise with one sentinel of 999,999,999": sentinel,
    "noise, then noise of 1e-7": quietened,
    "sines that repeat exactly": lambda: np.tile(np.sin(np.arange(80) / 80 * 2 * np.pi), N // 80),
}


def nearest(series: Any, i: int) -> float:
    """The z-normalised distance of window i to its nearest outside the exclusion zone, in extended precision."""
    windows = np.lib.stride_tricks.sliding_window_view(series, M)
    mine, least = shape(windows[i : i + 1]), np.inf
    for start in range(0, len(windows), 4096):
        apart = np.sqrt(((shape(windows[start : start + 4096]) - mine) ** 2).sum(axis=1))
        numbers = np.arange(start, start + len(apart))
        apart[np.abs(numbers - i) <= -(-M // 4)] = np.inf
        least = min(least, float(apart.min()))
    return least


def shape(windows: Any) -> Any:
    x = windows.astype(np.longdouble)
    x = x - x[:, :1]
    x = x - x.mean(axis=1, keepdims=True)
    x = x - x.mean(axis=1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True))


def main() -> None:
    import stumpy

    joins: dict[str, Callable[[Any], Any]] = {
        "tiles": lambda series: self_join(series, M, threads=2).distances[:, 0],
        "STUMPY": lambda series: stumpy.stump(series, M)[:, 0].astype(np.float64),
    }
    try:
        scamp = importlib.import_module("pyscamp")
        joins["SCAMP"] = lambda series: np.asarray(scamp.selfjoin(series, M, precision="double", threads=2)[0])
    except ImportError:
        print("pyscamp is not installed: `make bench` does that")
    print(f"{'largest error of a distance':<44}" + "".join(f"{name:>12}" for name in joins))
    for what, make in SERIES.items():
        series = make()
        last = len(series) - M
        rows = np.unique(np.concatenate([np.linspace(0, last, ROWS).astype(int), rng.integers(0, last, ROWS)]))
        truth = np.array([nearest(series, int(i)) for i in rows])
        errors = (np.abs(join(series)[rows] - truth).max() for join in joins.values())
        print(f"{what:<44}" + "".join(f"{error:12.1e}" for error in errors), flush=True)


if __name__ == "__main__":
    main()
