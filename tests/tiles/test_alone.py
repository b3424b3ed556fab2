"""Two functions that need no server: right on ordinary series and on hard ones, and clear about what they cannot do."""

import threading

import numpy as np
import pytest

from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from tests.tiles.conftest import assert_true
from workers.failures import InvalidInput
from workers.matrix_profile.tiles import ab_join, alone, self_join

M = 10
B = with_(with_(NOISE[:100], slice(30, 45), 2.0), 60, np.nan)


def test_the_documented_example():
    profile = self_join([584, -11, 23, 79, 1001, 0, -19], 3)
    expected = [0.11633857113691416, 2.694073918063438, 3.0000926340485923, 2.694073918063438, 0.11633857113691416]
    np.testing.assert_allclose(profile.distances[:, 0], expected, atol=1e-12)
    assert profile.indices[:, 0].tolist() == [4, 3, 0, 1, 0]
    assert profile.left.tolist() == [-1, -1, 0, 1, 0]
    assert profile.right.tolist() == [4, 3, 4, -1, -1]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_hard_series(case, normalize):
    if not normalize and case == "values near the largest":
        with pytest.raises(InvalidInput, match="divide the series first"):
            self_join(HARD[case], M, normalize=False)
    else:
        assert_true(self_join(HARD[case], M, normalize=normalize), HARD[case], M, normalize=normalize, tolerance=1e-7)


@pytest.mark.parametrize("case", HARD)
def test_hard_series_joined_with_another(case):
    assert_true(ab_join(HARD[case], B, M), HARD[case], M, against=B, tolerance=1e-7)
    assert_true(ab_join(B, HARD[case], M), B, M, against=HARD[case], tolerance=1e-7)


@pytest.mark.parametrize("case", ["a gap", "amplitude 1e-8", "one sentinel", "a sine", "constant stretches"])
def test_plain_distances_to_another_series(case):
    assert_true(ab_join(HARD[case], OTHER, M, normalize=False), HARD[case], M, against=OTHER, normalize=False)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_the_tiles_need_no_mending(monkeypatch, case, normalize):
    """What the check computes anew is what the tiles got wrong."""
    if not normalize and case == "values near the largest":
        return
    said, check = [], alone.check
    monkeypatch.setattr(alone, "check", lambda *told, **more: said.append(check(*told, **more)) or said[-1])
    self_join(HARD[case], M, normalize=normalize)
    assert said[0]["rows_recomputed"] == 0


@pytest.mark.parametrize("threads", [1, 2, None])
def test_any_number_of_threads_gives_the_same(threads):
    series = np.random.default_rng(0).standard_normal(5000).cumsum()
    profile, reference = self_join(series, 50, threads=threads), self_join(series, 50, threads=3)
    np.testing.assert_array_equal(profile.distances, reference.distances)
    np.testing.assert_array_equal(profile.indices, reference.indices)
    assert not [each for each in threading.enumerate() if each.name.startswith("tile")]


def test_any_kind_of_numbers_will_do():
    expected = self_join(np.round(WALK * 100), M)
    for series in (
        np.round(WALK * 100).astype(int),
        np.round(WALK * 100).astype("float32"),
        np.round(WALK * 100).tolist(),
    ):
        np.testing.assert_array_equal(self_join(series, M).distances, expected.distances)
    np.testing.assert_array_equal(self_join(np.repeat(np.round(WALK * 100), 2)[::2], M).distances, expected.distances)


def test_what_came_is_left_as_it_was():
    series = WALK.copy()
    self_join(series, M)
    ab_join(series, series, M, normalize=False)
    np.testing.assert_array_equal(series, WALK)


@pytest.mark.parametrize("normalize", [True, False])
def test_windows_without_a_neighbour(normalize):
    for series in (WALK[:M], WALK[: M + 3], np.full(30, np.nan)):
        profile = self_join(series, M, normalize=normalize)
        assert np.all(np.isinf(profile.distances))
        assert np.all(profile.indices == -1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: self_join(WALK, 2), "at least 3 samples, not 2"),
        (lambda: self_join(WALK, 151), "window of 151 samples does not fit into T, which has 150"),
        (lambda: ab_join(WALK, WALK[:5], 10), "window of 10 samples does not fit into B, which has 5"),
        (lambda: self_join(WALK.reshape(2, 75), 10), r"T must be one series, \(n,\); it has the shape \(2, 75\)"),
        (lambda: self_join(3.0, 10), "must be one series"),
        (lambda: self_join(WALK + 0j, 10), "T must be numbers, not complex128"),
        (lambda: ab_join(WALK, ["a"] * 20, 10), "B must be numbers"),
        (lambda: self_join(WALK, 10.5), "whole number of samples, not 10.5"),
        (lambda: self_join(WALK, 10, threads=0), "at least one thread, not 0"),
    ],
)
def test_what_cannot_be_computed_is_said_in_words(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()
