"""The careful gear against exact fractions, and when it is taken."""

from fractions import Fraction

import numpy as np
import pytest

from tests.tiles.brute import work
from workers.matrix_profile.tiles import bands, careful
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.errors import extremes, outlook
from workers.matrix_profile.tiles.kernel import BAND, BLOCK, ROWS
from workers.matrix_profile.tiles.record import Marks
from workers.matrix_profile.tiles.side import side, trust
from workers.matrix_profile.tiles.tile import Tile

METRICS = pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def exactly(series, i, j, m, normalize):
    """The covariance of two windows, or minus their squared distance, as a fraction."""
    x, y = ([Fraction(v) for v in series[k : k + m]] for k in (i, j))
    if not normalize:
        return -sum((u - v) ** 2 for u, v in zip(x, y, strict=True))
    mean, other = sum(x) / m, sum(y) / m
    return sum((u - mean) * (v - other) for u, v in zip(x, y, strict=True))


@METRICS
def test_quiet_windows_after_a_burst_1e8_times_as_loud_are_right_to_rounding(normalize):
    m, d, count = 8, 150, 120
    series = noise(400)
    series[40], series[d + 60] = 1e8, -1e8
    s = side(series, 1, BAND, m, normalize, np.full(393, np.inf))
    high, low, found = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    careful.start(high, low, len(high), s, s, 0, d, m, normalize)
    relied = trust(normalize, 0.0)
    bands.carefully(high, low, found, len(high), s, s, 1, 1 + count, d, m, normalize, relied, False)
    for w in (0, 17, 63):
        true = exactly(series, count - 1, count - 1 + d + w, m, normalize)
        got = Fraction(high[w]) + Fraction(low[w])
        assert abs(got - true) <= Fraction(1e-13)  # plainly it would be about 1


@METRICS
def test_windows_too_quiet_for_twice_the_precision_are_computed_afresh(normalize):
    m, d, count = 8, 150, 120
    series = noise(400) * 1e-14
    series[40], series[d + 60] = 1.0, -1.0
    s = side(series, 1, BAND, m, normalize, np.full(393, np.inf))
    high, low, found = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    relied = trust(normalize, 0.0)
    bands.carefully(high, low, found, len(high), s, s, 1, 1 + count, d, m, normalize, relied, True)
    for w in (0, 17, 63):
        true = exactly(series, count - 1, count - 1 + d + w, m, normalize)
        assert abs((Fraction(high[w]) + Fraction(low[w])) / true - 1) <= Fraction(1e-12)
    found = compute(work(series, series, m, Tile(0, 393, 14, 393), normalize=normalize))
    assert found.careful_cells == Tile(0, 393, 14, 393).cells(393)


@METRICS
@pytest.mark.parametrize("kind", ["noise", "walk", "sine", "drift"])
def test_the_error_of_the_plain_recurrence_stays_below_what_is_expected_of_it(kind, normalize):
    m, rows, d, n = 50, 8192, 900, 10_000
    t = np.arange(n)
    series = {"noise": noise(n), "walk": noise(n).cumsum(), "sine": np.sin(t / 30), "drift": noise(n) + t}[kind]
    s = side(series, 1, BAND, m, normalize, np.full(n - m + 1, np.inf))
    covariance, saved, found = np.empty(BAND), np.empty(BAND), np.empty(BLOCK * ROWS)
    bands.start(covariance, BAND, s, s, 0, d, m, normalize)
    marks, flags = Marks(np.zeros(ROWS, bool), np.zeros(ROWS, bool)), np.zeros(BAND // BLOCK, bool)
    bands.plainly(covariance, saved, found, flags, marks, s, s, 1, 1 + rows, d, m, normalize, trust(normalize, 0.0))
    high, low = np.empty(BAND), np.empty(BAND)
    careful.start(high, low, len(high), s, s, rows, rows + d, m, normalize)
    loud = extremes(s, normalize)
    step, _ = outlook(loud, loud, 0, rows + 1, d, rows + d + BAND, m, normalize)
    error = np.abs(covariance - (high + low)).max()
    assert error <= np.sqrt(step * (rows + m))


@METRICS
@pytest.mark.parametrize("kind", ["noise", "walk", "level", "sine"])
def test_ordinary_series_need_no_care(kind, normalize):
    n, m = 3000, 50
    series = {
        "noise": noise(n),
        "walk": noise(n).cumsum(),
        "level": noise(n) + 1e9 * normalize,
        "sine": np.sin(np.arange(n) / 20),
    }[kind]
    l = n - m + 1  # noqa: E741
    assert compute(work(series, series, m, Tile(0, l, 14, l), normalize=normalize)).careful_cells == 0


@METRICS
def test_care_is_taken_near_a_burst_and_nowhere_else(normalize):
    n, m = 9000, 50
    series = noise(n)
    series[4000] = 1e8
    l = n - m + 1  # noqa: E741
    tile = Tile(0, l, 14, l)
    found = compute(work(series, series, m, tile, normalize=normalize))
    assert 0 < found.careful_cells < 0.2 * tile.cells(l)
