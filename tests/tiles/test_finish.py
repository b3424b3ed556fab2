"""From similarities to a profile: constant windows, exact distances, left and right."""

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from tests.tiles.conftest import SlowHands, assert_true
from workers.matrix_profile.definition import Shapes
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.tiles.best import Best, Problem
from workers.matrix_profile.tiles.finish import finish
from workers.matrix_profile.tiles.join import join, pairs_of
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.windows import Windows
from workers.reporting import Silent

FLAT = with_(with_(WALK, slice(20, 50), 3.25), slice(90, 120), -1.0)
ONE_FLAT = with_(WALK, slice(70, 82), 1.0)
TREND = np.arange(60.0)
CASES = {
    "two constant stretches": FLAT,
    "one constant window": ONE_FLAT,
    "all constant": np.full(60, 0.1),
    "constant, with a gap": with_(FLAT, 35, np.nan),
    "constant at both ends": with_(with_(WALK, slice(0, 15), 2.0), slice(-15, None), 2.0),
    "rising, then constant": np.concatenate([TREND, np.full(20, 59.0)]),
    "rising and falling": np.concatenate([TREND, TREND[::-1]]),
}


def profiles(a, b, m, normalize=True):
    joined = join(Problem(a, b, m, normalize), SlowHands(), Silent())
    return joined.profile, joined.other


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_constant_windows_in_a_self_join(case, normalize):
    profile, other = profiles(CASES[case], None, 12, normalize)
    assert other is None
    assert_true(profile, CASES[case], 12, normalize=normalize)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("other_case", ["a walk", "two constant stretches", "all constant"])
def test_constant_windows_in_an_ab_join(case, other_case, normalize):
    a, b = CASES[case], {"a walk": OTHER}.get(other_case, CASES.get(other_case))
    profile, other = profiles(a, b, 12, normalize)
    assert_true(profile, a, 12, against=b, normalize=normalize)
    assert_true(other, b, 12, against=a, normalize=normalize)


def test_nothing_known_is_no_neighbour():
    problem = Problem(WALK, None, 12, True)
    profile, _ = finish(Best.none(problem), pairs_of(problem, 1))
    assert np.all(np.isinf(profile.distances))
    for each in (profile.indices, profile.left, profile.right):
        assert np.all(each == -1)


def test_of_two_that_seem_alike_the_nearer_is_named():
    """Whatever the last digits of a similarity say, the two pairs are measured."""
    problem = Problem(WALK, None, 12, True)
    truth = oracle.matrix_profile(WALK, 12)
    best = Best.none(problem)
    left, right = 20, 100
    nearer = min(left, right, key=lambda j: truth.table[60, j])
    best.rows.similarity[60], best.rows.neighbors[60] = 0.9 + 1e-11 * (nearer == left), right
    best.columns.similarity[60], best.columns.neighbors[60] = 0.9 + 1e-11 * (nearer == right), left
    profile, _ = finish(best, pairs_of(problem, 1))
    assert profile.indices[60, 0] == nearer
    assert profile.distances[60, 0] == pytest.approx(float(truth.table[60, nearer]), rel=1e-14)
    assert (profile.left[60], profile.right[60]) == (left, right)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_a_pair_is_as_far_apart_as_defined(monkeypatch, case, normalize, threads):
    if not normalize and case == "values near the largest":
        return
    monkeypatch.setattr("workers.matrix_profile.tiles.pairs.CHUNK", 100)
    series, m = HARD[case], 10
    a, b = Windows(series, m), Windows(NOISE, m)
    measure = Shapes(a, b) if normalize else Norms(a, b, 2.0)
    i = np.repeat(np.arange(len(a)), 5)
    j = np.random.default_rng(0).integers(-1, len(b), len(i))
    expected = np.where(j >= 0, measure.pairs(i, j), np.inf)
    found = Pairs.of(a, b, normalize=normalize, threads=threads).distances(i, j)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_looking_through_finds_the_nearest(case, normalize):
    if not normalize and case == "values near the largest":
        return
    series = HARD[case]
    windows = Windows(series, 10)
    pairs = Pairs.of(windows, windows, normalize=normalize)
    table = oracle.matrix_profile(series, 10, against=series, normalize=normalize).table.astype(float)
    for row in range(0, len(table), 7):
        for first, stop in ((0, row), (row + 1, len(table)), (3, 4), (5, 5)):
            there = table[row, first:stop]
            least = there.min(initial=np.inf)
            apart, found = pairs.nearer(row, first, stop, np.inf)
            assert apart == pytest.approx(least, rel=1e-9, abs=1e-12)
            assert (found >= 0) == np.isfinite(least)
            if found >= 0:
                assert first <= found < stop
                assert table[row, found] == pytest.approx(apart, rel=1e-9, abs=1e-12)
                assert pairs.nearer(row, first, stop, apart / 2) == (apart / 2, -1)


@pytest.mark.parametrize("level", [0.0, 0.1, -3e8])
def test_equal_windows_are_exactly_zero_apart(level):
    windows = Windows(np.tile(NOISE[:30] + level, 4), 10)
    i = np.arange(len(windows) - 30)
    for normalize in (True, False):
        assert np.all(Pairs.of(windows, windows, normalize=normalize).distances(i, i + 30) == 0.0)
