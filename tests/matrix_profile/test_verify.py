"""A profile that is wrong does not leave unnoticed, and not uncorrected."""

import numpy as np
import pytest

from tests.matrix_profile.conftest import Heard
from workers.matrix_profile import exact, verify
from workers.matrix_profile.definition import Shapes
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.profile import Profile
from workers.matrix_profile.windows import Windows

SERIES = np.random.default_rng(11).standard_normal(300).cumsum()
MEASURES = {"shape": Shapes, "p=1": lambda a, b: Norms(a, b, 1.0)}


def true_profile(measure, k=1, self_join=True) -> Profile:
    windows = len(measure.a)
    empty = Profile(
        np.zeros((windows, k)), np.zeros((windows, k), dtype=np.int64), *np.zeros((2, windows), dtype=np.int64)
    )
    exact.recompute(empty, measure, np.arange(windows), self_join=self_join)
    return empty


def check(profile, measure, seconds=1.0):
    heard = Heard()
    return verify.verify(profile, measure, self_join=True, seconds=seconds, report=heard), heard


@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("k", [1, 3])
def test_corrupted_rows_are_found_and_replaced(distance, k):
    a = Windows(SERIES, 16)
    measure = MEASURES[distance](a, a)
    truth, profile = true_profile(measure, k), true_profile(measure, k)
    profile.distances[40] = 0.0  # a perfect match that is none
    profile.distances[90, 0] *= 0.9
    profile.indices[150] = (profile.indices[150] + 7) % 200  # another neighbour, at a distance that is not its own
    profile.distances[200], profile.indices[200] = np.inf, -1  # a neighbour lost
    checked, heard = check(profile, measure)

    np.testing.assert_allclose(profile.distances, truth.distances, atol=1e-9)
    np.testing.assert_array_equal(profile.indices, truth.indices)
    assert checked["rows_recomputed"] == 4
    assert checked["rows_checked"] >= verify.SAMPLED_ROWS
    assert checked["max_abs_difference"] < 1e-9
    assert "4 windows" in heard.warnings[0]


def test_a_profile_wrong_throughout_in_a_consistent_way_is_caught_by_the_rows_compared_in_full():
    a = Windows(SERIES, 16)
    measure = Shapes(a, a)
    profile = true_profile(measure)
    profile.indices[:, 0] = (np.arange(len(a)) + 100) % len(a)  # right distances of wrong neighbours
    profile.distances[:, 0] = measure.pairs(np.arange(len(a)), profile.indices[:, 0])
    checked, heard = check(profile, measure)
    np.testing.assert_array_equal(profile.indices, true_profile(measure).indices)
    assert checked["rows_recomputed"] == len(a)
    assert checked["max_abs_difference"] < 1e-9
    assert "all 285 were computed again" in heard.warnings[0]


@pytest.mark.parametrize("distance", MEASURES)
def test_a_profile_wrong_throughout_that_cannot_be_mended_in_time_fails(monkeypatch, distance):
    monkeypatch.setattr(verify, "LEAST_SECONDS", 0.0)
    a = Windows(SERIES * 1e-8, 16)  # also where all distances are small
    measure = MEASURES[distance](a, a)
    profile = true_profile(measure)
    profile.indices[:, 0] = (np.arange(len(a)) + 100) % len(a)
    profile.distances[:, 0] = measure.pairs(np.arange(len(a)), profile.indices[:, 0])
    with pytest.raises(verify.Unverifiable, match="rows compared with the definition differed"):
        check(profile, measure, seconds=0.0)


def test_a_neighbour_where_there_is_none_is_noticed(monkeypatch):
    """Distance 0 is as near to a missing one as a difference can tell."""
    a = Windows(SERIES[:23], 16)
    measure = Shapes(a, a)
    profile = true_profile(measure)
    assert np.isfinite(profile.distances).sum() < len(a)
    differing, _ = verify._compare(profile, measure, np.arange(len(a)), self_join=True)
    assert differing == 0
    missing = np.flatnonzero(np.isinf(profile.distances[:, 0]))[0]
    profile.distances[missing] = 0.0
    differing, _ = verify._compare(profile, measure, np.arange(len(a)), self_join=True)
    assert differing == 1


def test_a_right_profile_passes_in_silence():
    a = Windows(SERIES, 16)
    checked, heard = check(true_profile(Shapes(a, a)), Shapes(a, a))
    assert checked["max_abs_difference"] < 1e-12
    assert checked["rows_recomputed"] == 0
    assert heard.warnings == []


@pytest.mark.parametrize("distance", MEASURES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_wrong_neighbours_on_one_side_are_noticed_though_the_distances_are_right(distance, side):
    a = Windows(SERIES, 16)
    measure = MEASURES[distance](a, a)
    truth, profile = true_profile(measure), true_profile(measure)
    named = getattr(profile, side)
    named[named >= 0] = np.where(side == "left", 0, len(a) - 1)
    checked, heard = check(profile, measure)
    np.testing.assert_array_equal(getattr(profile, side), getattr(truth, side))
    assert checked["rows_recomputed"] == len(a)
    assert "differed" in heard.warnings[0]


def test_quiet_windows_are_offered_to_all_others(monkeypatch):
    """A loud window whose nearest neighbour is a quiet one, lost to rounding, gets it back."""
    series = np.random.default_rng(5).standard_normal(400)
    series[300:316] = series[100:116] * 1e-7  # the same shape, ten million times smaller
    a = Windows(series, 16)
    measure = Shapes(a, a)
    assert np.flatnonzero(a.deviations < 1e-3).tolist() == [300]
    profile = true_profile(measure)
    second = true_profile(measure, k=2)
    profile.distances[100, 0], profile.indices[100, 0] = second.distances[100, 1], second.indices[100, 1]
    profile.right[100] = -1
    check(profile, measure)
    assert profile.indices[100, 0] == 300
    assert profile.right[100] == 300
    assert profile.distances[100, 0] < 1e-7


def test_what_there_is_no_time_for_is_said(monkeypatch):
    """Windows in doubt that are right all the same: the rows compared agree, and the job succeeds with a warning."""
    monkeypatch.setattr(verify, "LEAST_SECONDS", 0.0)
    a = Windows(SERIES, 16)
    profile = true_profile(Shapes(a, a))
    profile.distances[:100] = 0.0  # measured again at once, but doubted
    _, heard = check(profile, Shapes(a, a), seconds=0.0)
    assert any("92 windows" in warning for warning in heard.warnings)
