"""A profile that is wrong does not leave unnoticed: it is mended, or refused. One that is right passes as it is."""

import time

import numpy as np
import pytest

from tests.matrix_profile.hard import HARD, NOISE, OTHER, with_
from workers.matrix_profile import exact, verify
from workers.matrix_profile.definition import Shapes
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.profile import Profile, exclusion_zone
from workers.matrix_profile.tiles import check as module
from workers.matrix_profile.tiles.check import check
from workers.matrix_profile.tiles.comparison import Comparison
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.verify import Unverifiable
from workers.matrix_profile.windows import Windows

SERIES = np.random.default_rng(11).standard_normal(300).cumsum()
MEASURES = {"normalised": Shapes, "plain": lambda a, b: Norms(a, b, 2.0)}
M = 16


def measured(distance, series=SERIES, other=None, m=M):
    a = Windows(series, m)
    return MEASURES[distance](a, a if other is None else Windows(other, m))


def true_profile(measure, self_join=True):
    count = len(measure.a)
    distances, indices = np.zeros((count, 1)), np.zeros((count, 1), dtype=np.int64)
    empty = Profile(distances, indices, *np.full((2, count), -1, dtype=np.int64))
    exact.recompute(empty, measure, np.arange(count), self_join=self_join)
    return empty


def checked(profile, measure, listener, *, self_join=True, seconds=1.0, **told):
    return check(profile, measure, self_join=self_join, seconds=seconds, report=listener, **told)


def compared(profile, measure):
    pairs = Pairs.of(measure.a, measure.b, normalize=isinstance(measure, Shapes))
    return Comparison(profile, measure, pairs, np.arange(len(measure.a)), self_join=True)


def assert_same(profile, truth):
    np.testing.assert_allclose(profile.distances, truth.distances, atol=1e-12)
    for name in ("indices", "left", "right"):
        np.testing.assert_array_equal(getattr(profile, name), getattr(truth, name))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("other", [None, OTHER], ids=["self", "AB"])
def test_a_right_profile_passes_as_it_is(listener, distance, other, threads):
    measure = measured(distance, other=other)
    profile, truth = (true_profile(measure, other is None) for _ in range(2))
    said = checked(profile, measure, listener, self_join=other is None, threads=threads)
    assert_same(profile, truth)
    assert said["rows_recomputed"] == 0
    assert said["rows_checked"] >= verify.SAMPLED_ROWS
    assert said["max_abs_difference"] < 1e-12
    assert not listener.warnings


@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("case", HARD)
def test_so_does_one_where_arithmetic_is_hard(listener, distance, case):
    if distance == "plain" and case == "values near the largest":
        return
    measure = measured(distance, HARD[case], m=10)
    profile = true_profile(measure)
    assert checked(profile, measure, listener)["rows_recomputed"] == 0


def second_best(measure, row, profile):
    """The row's distances without its neighbour's surroundings, and the nearest of what is left."""
    there = measure.rows(np.array([row]))[0]
    zone = exclusion_zone(measure.a.m)
    for near in (row, int(profile.indices[row, 0])):
        there[max(0, near - zone) : near + zone + 1] = np.inf
    return int(there.argmin())


def hide(profile, measure, row):
    """The row has its second best neighbour, with that one's right distance."""
    other = second_best(measure, row, profile)
    profile.indices[row, 0] = other
    profile.distances[row] = measure.pairs(np.array([row]), np.array([other]))
    getattr(profile, "left" if other < row else "right")[row] = other


def swap(profile, one, other):
    for each in (profile.indices, profile.left, profile.right):
        each[[one, other]] = each[[other, one]]


def lose(profile, row):
    profile.distances[row], profile.indices[row] = np.inf, -1
    profile.left[row] = profile.right[row] = -1


SPOILT = {
    "a distance too small": lambda profile, measure: profile.distances.__setitem__(40, 0.0),
    "a distance too large": lambda profile, measure: profile.distances.__setitem__(90, profile.distances[90] * 1.1),
    "a distance that is none": lambda profile, measure: profile.distances.__setitem__(90, np.nan),
    "a nearer neighbour hidden": lambda profile, measure: hide(profile, measure, 7),
    "neighbours swapped": lambda profile, measure: swap(profile, 100, 200),
    "a neighbour lost": lambda profile, measure: lose(profile, 150),
    "a neighbour too near by": lambda profile, measure: profile.indices.__setitem__(60, 61),
    "a neighbour there is not": lambda profile, measure: profile.indices.__setitem__(60, 10**6),
    "a left neighbour on the right": lambda profile, measure: profile.left.__setitem__(60, 70),
}


@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("case", SPOILT)
def test_what_is_wrong_in_one_row_is_mended(listener, distance, case):
    measure = measured(distance)
    profile, truth = true_profile(measure), true_profile(measure)
    SPOILT[case](profile, measure)
    said = checked(profile, measure, listener)
    assert_same(profile, truth)
    assert 0 < said["rows_recomputed"] < 20
    assert said["max_abs_difference"] < 1e-12
    assert "had not the neighbour they should have" in listener.warnings[0]


@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("step", [2, 5])
def test_hidden_neighbours_are_told_by_the_rows_beside_them(distance, step):
    """Few are missed, and nothing is left to chance: the row before, or after, or the neighbour itself knows better."""
    measure = measured(distance)
    profile = true_profile(measure)
    hidden = np.arange(7, len(measure.a) - 7, step)
    before = profile.distances[hidden].copy()
    for row in hidden:
        hide(profile, measure, row)
    worse = hidden[(profile.distances[hidden] > before * 1.01)[:, 0]]
    outdone = compared(profile, measure).outdone()
    assert np.count_nonzero(outdone[worse]) > 0.7 * len(worse)
    assert not outdone[np.setdiff1d(np.arange(len(outdone)), hidden)].any()


@pytest.mark.parametrize("distance", MEASURES)
def test_a_tile_that_was_lost_is_mended_around_where_it_shows(listener, distance):
    """All the rows of a stretch have the best of what is left when they are not compared with another stretch."""
    measure = measured(
        distance,
        np.tile(np.random.default_rng(3).standard_normal(150).cumsum(), 2)
        + 0.05 * np.random.default_rng(4).standard_normal(300),
    )
    profile, truth = true_profile(measure), true_profile(measure)
    for row in range(30, 60):
        hide(profile, measure, row)
    said = checked(profile, measure, listener)
    np.testing.assert_allclose(profile.distances, truth.distances, atol=1e-12)
    assert said["rows_recomputed"] >= 30


@pytest.mark.parametrize("distance", MEASURES)
def test_one_wrong_throughout_in_a_consistent_way_is_caught(listener, distance):
    measure = measured(distance)
    profile, rows = true_profile(measure), np.arange(len(measure.a))
    profile.indices[:, 0] = (rows + 100) % len(rows)  # right distances of wrong neighbours
    profile.distances[:, 0] = measure.pairs(rows, profile.indices[:, 0])
    said = checked(profile, measure, listener)
    assert_same(profile, true_profile(measure))
    assert said["rows_recomputed"] > 0
    assert said["max_abs_difference"] < 1e-12
    assert listener.warnings


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_side_that_is_wrong_is_caught_in_the_rows_compared(listener, side):
    """Of left and right only the rows compared in full can tell: here in all rows."""
    measure = measured("normalised")
    profile, truth = true_profile(measure), true_profile(measure)
    if side == "left":
        profile.left[profile.left > 0] = 0
    else:
        profile.right[profile.right >= 0] = len(measure.a) - 1
    said = checked(profile, measure, listener)
    assert_same(profile, truth)
    assert said["rows_recomputed"] == len(measure.a)


@pytest.mark.parametrize("distance", MEASURES)
def test_what_cannot_be_mended_in_time_is_refused(monkeypatch, listener, distance):
    monkeypatch.setattr(verify, "LEAST_SECONDS", 0.0)
    measure = measured(distance, SERIES * 1e-8)  # also where all distances are small
    profile, rows = true_profile(measure), np.arange(len(measure.a))
    profile.indices[:, 0] = (rows + 100) % len(rows)
    profile.distances[:, 0] = measure.pairs(rows, profile.indices[:, 0])
    with pytest.raises(Unverifiable, match="would take too long"):
        checked(profile, measure, listener, seconds=0.0)


def test_rows_that_differ_also_when_computed_anew_are_refused(monkeypatch, listener):
    measure = measured("normalised")
    profile = true_profile(measure)
    profile.left[profile.left > 0] = 0
    monkeypatch.setattr(module.exact, "recompute", lambda *_, **_kw: None)
    with pytest.raises(Unverifiable, match="also when computed from it"):
        checked(profile, measure, listener)


def test_windows_without_a_neighbour_pass(listener):
    for series in (np.full(40, np.nan), SERIES[:M], SERIES[: M + 3], with_(SERIES, slice(20, 290), np.nan)):
        measure = measured("normalised", series)
        assert checked(true_profile(measure), measure, listener)["rows_recomputed"] == 0
    assert not listener.warnings


def test_a_neighbour_where_there_is_none_is_noticed(listener):
    """Distance 0 is as near to a missing one as a difference can tell."""
    measure = measured("normalised", SERIES[:23])
    profile, truth = true_profile(measure), true_profile(measure)
    alone = int(np.flatnonzero(~np.isfinite(profile.distances[:, 0]))[0])
    profile.distances[alone], profile.indices[alone] = 0.0, 0
    checked(profile, measure, listener)
    assert_same(profile, truth)


def test_the_rows_compared_are_those_where_arithmetic_is_hardest():
    series = with_(NOISE * 1e-3, slice(70, 73), [1e8, -1e8, 2e8])
    series[100:130] *= 1e-4
    measure = measured("normalised", series)
    comparison = compared(true_profile(measure), measure)
    rows = comparison.sample(0)
    assert 72 + 1 in rows, "the first window after the burst"
    assert 72 - M in rows, "the last one before"
    lengths = np.lib.stride_tricks.sliding_window_view(series, M).std(axis=1)
    assert lengths.argmin() in rows
    assert lengths.argmax() in rows


def test_it_costs_little(listener):
    """Beside comparing all windows with all."""
    series = np.random.default_rng(0).standard_normal(20_000).cumsum()
    measure = measured("normalised", series, m=100)
    from workers.matrix_profile.tiles import self_join

    profile = self_join(series, 100, threads=1)
    started = time.thread_time()
    checked(profile, measure, listener)
    took = time.thread_time() - started
    assert took < 0.25 * measure.seconds_per_pair * len(measure.a) ** 2
