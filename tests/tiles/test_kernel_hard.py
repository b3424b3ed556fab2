"""Series on which a running covariance goes wrong, tile after tile, against extended precision."""

from functools import lru_cache

import numpy as np
import pytest

from tests.tiles.brute import distances, shapes, windows, work
from workers.matrix_profile.profile import exclusion_zone
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.tile import Tile
from workers.matrix_profile.treatment import treat

N, M, SIDE = 4000, 60, 1500
T = np.arange(N)
HALF = N // 2


def noise(seed=0):
    return np.random.default_rng(seed).standard_normal(N)


def with_one(size, at=N // 3):
    series = noise()
    series[at] = size
    return series


def flat_after(ratio):
    return noise() * np.where(T < HALF, 1.0, ratio)


@lru_cache
def series(name):
    return {
        "offset 1e9": noise().cumsum() + 1e9,
        "amplitude 1e-8": 1e-8 * noise(),
        "drift over 200,000": noise() + T * (200_000 / N),
        "burst of 1e8": with_one(1e8),
        "sentinel 999,999,999": with_one(999_999_999.0),
        "two sentinels": with_one(999_999_999.0) + 999_999_999.0 * (T == 2900),
        "burst at the start": with_one(1e8, 0),
        "burst at the end": with_one(-1e8, N - 1),
        "lively, then flat": flat_after(1e-7),
        "flat, then lively": flat_after(1e-7)[::-1].copy(),
        "lively and flat by turns": noise() * np.where(T // 300 % 2 == 0, 1.0, 1e-7),
        "spikes": np.where(T % 97 == 0, 1e4, 1.0) * noise(),
        "near 1e160": 1e160 * noise(),
        "flat parts": np.where(T // 200 % 3 == 0, 0.25, noise()),
        "sine with 1e-6 of noise": np.sin(T / 25) + 1e-6 * noise(),
        "whole numbers": np.round(2 * noise()),
    }[name]


NAMES = (
    "offset 1e9", "amplitude 1e-8", "drift over 200,000", "burst of 1e8", "sentinel 999,999,999", "two sentinels",
    "burst at the start", "burst at the end", "lively, then flat", "flat, then lively", "lively and flat by turns",
    "spikes", "near 1e160", "flat parts", "sine with 1e-6 of noise", "whole numbers",
)  # fmt: skip


def self_join(values, m, normalize, size=SIDE):
    """Neighbours to the right and to the left of each window, int64 (l,), and their similarities, from tiles of `size`."""
    l, zone = len(values) - m + 1, exclusion_zone(m)  # noqa: E741
    best, nearest = np.full((2, l), -np.inf), np.full((2, l), -1)
    for diagonal in range(zone + 1, l, size):
        for row in range(0, l - diagonal, size):
            tile = Tile(row, min(size, l - row), diagonal, min(size, l - diagonal))
            given = {"row_similarity": best[0], "column_similarity": best[1]}
            found = compute(work(values, values, m, tile, normalize=normalize, **given))
            best[0][found.rows], nearest[0][found.rows] = found.row_similarity, found.row_neighbors
            best[1][found.columns], nearest[1][found.columns] = found.column_similarity, found.column_neighbors
    return nearest, best


def check(values, m, normalize, which, near):
    """Each of the windows `which` has neighbours as near as any; `near` is relative: to the distances' own scale
    where normalised, else to the window's spread."""
    treated = treat([values], normalize=normalize, p=2.0).series[0]
    nearest, best = self_join(treated, m, normalize)
    rows = shapes(values, m) if normalize else windows(treated, m)
    zone = exclusion_zone(m)
    for i in which:
        apart = distances(rows[i], rows, m, normalize)
        apart[max(0, i - zone) : i + zone + 1] = np.inf
        apart[~np.isfinite(apart)] = np.inf
        unit = 1.0 if normalize else max(float(treated[i : i + m].std()), 1e-9 * float(np.abs(treated).max()))
        for side, part in ((0, slice(i + 1, None)), (1, slice(0, i))):
            true = apart[part].min(initial=np.inf)
            neighbor = nearest[side][i]
            assert (neighbor < 0) == np.isinf(true), (i, side)
            if neighbor >= 0:
                assert apart[neighbor] - true <= near * unit, (i, side, best[side][i])


SUSPECTS = np.r_[
    0, 1, N // 3 - M : N // 3 + 3, N // 3 + M, HALF - M - 1 : HALF + 2, HALF + M, 2900 - M, 2901, N - M - 1, N - M
]


@pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])
@pytest.mark.parametrize("name", NAMES)
def test_neighbours_are_as_near_as_any(name, normalize):
    which = np.r_[SUSPECTS[::4], np.random.default_rng(1).integers(0, N - M + 1, 40)]
    check(series(name), M, normalize, which, near=1e-6)


@pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])
def test_a_long_drift(normalize):
    n, m = 200_000, 100
    values = np.random.default_rng(2).standard_normal(n) + np.arange(n)
    treated = treat([values], normalize=normalize, p=2.0).series[0]
    l = n - m + 1  # noqa: E741
    rows, reach = Tile(150_000, 2048, 26, l), None
    found = compute(work(treated, treated, m, rows, normalize=normalize))
    for k in (0, 1000, 2047):
        i = int(found.rows[k])
        reach = slice(i + 26, l)
        others = (shapes(values[reach.start :], m), shapes(values[i:], m)[0]) if normalize else None
        if others is None:
            all_windows = windows(treated, m)
            others = (all_windows[reach], all_windows[i])
        apart = distances(others[1], others[0], m, normalize)
        assert apart[found.row_neighbors[k] - reach.start] - apart.min() <= 1e-6


@pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])
def test_exact_repeats_are_found_as_such(normalize):
    period = np.sin(2 * np.pi * np.arange(150) / 150) + 0.1 * np.random.default_rng(3).standard_normal(150)
    values = np.tile(period, 20)
    nearest, best = self_join(values, 40, normalize)
    for side, whole in ((0, slice(0, 2960 - 150)), (1, slice(150, 2961))):
        i = np.arange(2961)[whole]
        assert ((nearest[side][whole] - i) % 150 == 0).all()
        assert (best[side][whole] >= (1.0 if normalize else -1e-25)).all()


@pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])
def test_one_exact_repeat_among_near_ones_is_the_one_named(normalize):
    m = 50
    values = np.sin(np.arange(N) / 7.0) + 1e-5 * noise(5)
    values[3000 : 3000 + m] = values[500 : 500 + m]
    nearest, best = self_join(values, m, normalize)
    assert nearest[0][500] == 3000
    assert nearest[1][3000] == 500
    assert best[0][500] >= (1.0 if normalize else 0.0)


@pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])
@pytest.mark.parametrize("pair", [("burst of 1e8", "lively, then flat"), ("flat parts", "two sentinels")], ids=str)
def test_two_series_join_both_ways(pair, normalize):
    a, b = treat([series(pair[0])[:2500], series(pair[1])], normalize=normalize, p=2.0).series
    l_a, l_b = len(a) - M + 1, len(b) - M + 1
    found = compute(work(a, b, M, Tile(0, l_a, 1 - l_a, l_a + l_b - 1), normalize=normalize))
    left, right = (shapes(a, M), shapes(b, M)) if normalize else (windows(a, M), windows(b, M))
    sides = ((found.rows, found.row_neighbors, left, right), (found.columns, found.column_neighbors, right, left))
    for which, neighbors, mine, others in sides:
        for k in np.random.default_rng(4).integers(0, len(which), 30):
            apart = distances(mine[which[k]], others, M, normalize)
            unit = 1.0 if normalize else float(mine[which[k]].std()) or 1.0
            assert apart[neighbors[k]] - np.nanmin(apart) <= 1e-6 * unit
