"""Means and lengths of windows, against extended precision."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiles.brute import windows
from workers.matrix_profile.tiles.moments import filled, moments
from workers.matrix_profile.tiles.side import side
from workers.matrix_profile.tiles.twofold import square, two_product, two_sum


def moments_of(values, m):
    count = len(values) - m + 1
    mean, low, norm, whole = np.empty(count), np.empty(count), np.empty(count), np.empty(count, bool)
    moments(values, np.zeros(len(values), bool), m, mean, low, norm, whole)
    assert whole.all()
    return mean, low, norm


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def with_burst(n, size):
    series = noise(n)
    series[n // 3] = size
    return series


n, m = 5000, 100
SERIES = {
    "noise": noise(n),
    "level 1e9": noise(n) + 1e9,
    "level 1e9 of another sign": -1e9 - noise(n),
    "walk": noise(n).cumsum(),
    "amplitude 1e-8": 1e-8 * noise(n),
    "drift": noise(n) + 40.0 * np.arange(n),
    "burst of 1e8": with_burst(n, 1e8),
    "sentinel": with_burst(n, 999_999_999.0),
    "lively, then flat": noise(n) * np.where(np.arange(n) < n // 2, 1.0, 1e-7),
    "lively, then flat elsewhere": noise(n) * np.where(np.arange(n) < n // 2, 1.0, 1e-9) + (np.arange(n) >= n // 2),
    "spikes of 1e9": np.where(np.arange(n) % 150 == 0, 1e9, 1.0) * noise(n),
}


@pytest.mark.parametrize("name", SERIES)
def test_means_and_lengths_are_exact_to_rounding(name):
    values = SERIES[name]
    mean, low, norm = moments_of(values, m)
    rows = windows(values, m)
    first = rows[:, :1]
    rest = rows - first  # exact in extended precision
    middle = rest.mean(axis=1, keepdims=True)
    true = np.sqrt(((rest - middle) ** 2).sum(axis=1))
    np.testing.assert_allclose(norm, true.astype(float), rtol=1e-12)
    error = ((mean.astype(np.longdouble) - first[:, 0]) - middle[:, 0]) + low
    assert np.abs(error).max() <= 1e-17 * np.abs(values).max()
    assert (np.abs(error) <= 1e-15 * true).all()  # a mean's error counts beside what is left after it is taken away


def test_constant_windows_have_no_length_and_their_own_value_as_mean():
    values = SERIES["walk"].copy()
    values[300:420] = values[1000:1100] = 0.1
    mean, low, norm = moments_of(values, m)
    constant = np.r_[300:321, 1000]
    np.testing.assert_array_equal(np.flatnonzero(norm == 0), constant)
    np.testing.assert_array_equal(mean[constant], 0.1)
    np.testing.assert_array_equal(low[constant], 0.0)


def test_a_missing_sample_repeats_the_one_before_and_the_first_ones_the_first_there_is():
    out, missing = np.empty(9), np.empty(9, bool)
    filled(np.array([np.nan, 2.0, np.inf, 3.0, np.nan]), 1, 3, out, missing)
    np.testing.assert_array_equal(out, [2, 2, 2, 2, 3, 3, 3, 3, 3])
    np.testing.assert_array_equal(missing, [1, 1, 0, 1, 0, 1, 1, 1, 1])


@pytest.mark.parametrize("normalize", [True, False])
def test_a_side_knows_which_windows_count(normalize):
    values = noise(60)
    values[20], values[40:50] = np.nan, 1.0
    s = side(values, 2, 5, 8, normalize, np.full(53, -np.inf))
    counts = np.isfinite(s.z)
    missing = np.r_[0:2, 15:23, 55:60]
    expected = np.ones(60, bool)
    expected[missing] = False
    if normalize:
        expected[42:45] = False
    np.testing.assert_array_equal(counts, expected)


SOME = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


@settings(deadline=None)
@given(SOME, SOME)
def test_what_a_sum_and_a_product_lose_is_kept(x, y):
    high, low = two_sum(x, y)
    assert Fraction(high) + Fraction(low) == Fraction(x) + Fraction(y)
    high, low = two_product(x, y)
    assert Fraction(high) + Fraction(low) == Fraction(x) * Fraction(y)


@settings(deadline=None)
@given(SOME)
def test_a_square_in_twice_the_precision(x):
    low = x * 2.0**-60
    high, rest = square(x, low)
    exact = (Fraction(x) + Fraction(low)) ** 2
    assert abs(Fraction(high) + Fraction(rest) - exact) <= exact * Fraction(2) ** -100
