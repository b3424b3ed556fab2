"""A job's profile is the one the definition gives, on ordinary data and where arithmetic is hard."""

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from workers.failures import InvalidInput


def assert_true(done, series, window, tolerance=1e-7, **asked):
    """Distances as defined; every neighbour named is as far away as it is said to be (ties may name another)."""
    truth = oracle.matrix_profile(series, window, **asked)
    scale = np.max(truth.distances[np.isfinite(truth.distances)], initial=0.0) or 1.0
    close = {"rtol": tolerance, "atol": tolerance * scale}
    np.testing.assert_allclose(done.distances, truth.distances, **close)
    np.testing.assert_allclose(truth.at(done.indices), truth.distances, **close)
    np.testing.assert_allclose(truth.at(done.arrays["left_indices"]), truth.left, **close)
    np.testing.assert_allclose(truth.at(done.arrays["right_indices"]), truth.right, **close)
    for row in done.indices:
        named = row[row >= 0]
        assert len(set(named)) == len(named)


def test_the_documented_example(job):
    done = job([584, -11, 23, 79, 1001, 0, -19], 3)
    expected = [0.11633857113691416, 2.694073918063438, 3.0000926340485923, 2.694073918063438, 0.11633857113691416]
    np.testing.assert_allclose(done.arrays["distances"], expected, atol=1e-12)
    assert done.arrays["indices"].tolist() == [4, 3, 0, 1, 0]
    assert done.arrays["left_indices"].tolist() == [-1, -1, 0, 1, 0]
    assert done.arrays["right_indices"].tolist() == [4, 3, 4, -1, -1]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("against", [None, OTHER], ids=["self", "AB"])
@pytest.mark.parametrize("distance", [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.0, 1.5))], ids=str)
def test_every_distance_and_join(job, distance, against, k):
    done = job(WALK, 12, against=against, k=k, **distance)
    assert_true(done, WALK, 12, against=against, k=k, **distance)


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("distance", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_hard_series(job, case, distance):
    if distance and case == "values near the largest":
        with pytest.raises(InvalidInput, match="divide the series first"):
            job(HARD[case], 10, **distance)
    else:
        assert_true(job(HARD[case], 10, **distance), HARD[case], 10, **distance)


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("k", [1, 3])
def test_hard_series_joined_with_another(job, case, k):
    other = with_(with_(NOISE[:100], slice(30, 45), 2.0), 60, np.nan)
    assert_true(job(HARD[case], 10, against=other, k=k), HARD[case], 10, against=other, k=k)
    assert_true(job(other, 10, against=HARD[case], k=k), other, 10, against=HARD[case], k=k)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_small_values_keep_their_distances_in_a_norm(job, p):
    small = WALK * 1e-7
    assert_true(
        job(small, 8, normalize=False, p=p, against=small[::-1]), small, 8, normalize=False, p=p, against=small[::-1]
    )


FINE = ["shares that sum to one", "ulps of a level", "ulps in a stretch", "quiet as 1e-14"]


@pytest.mark.parametrize("case", FINE)
@pytest.mark.parametrize("window", [5, 8, 20, 40])
def test_windows_that_vary_by_a_few_ulps(job, case, window):
    series = HARD[case]
    assert_true(job(series, window), series, window)
    assert_true(job(series, window, k=3), series, window, k=3)


@pytest.mark.parametrize("case", FINE)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 1.5])
def test_norms_of_a_few_ulps_are_exact_relative_to_themselves(job, case, p):
    asked = {"normalize": False, "p": p}
    for done, truth in (
        (job(HARD[case], 10, **asked), oracle.matrix_profile(HARD[case], 10, **asked)),
        (
            job(HARD[case], 10, against=HARD[case][20:90] * 1.0, k=2, **asked),
            oracle.matrix_profile(HARD[case], 10, against=HARD[case][20:90], k=2, **asked),
        ),
    ):
        np.testing.assert_allclose(done.distances, truth.distances, rtol=1e-8)
        np.testing.assert_allclose(truth.at(done.indices), truth.distances, rtol=1e-8)
        np.testing.assert_allclose(truth.at(done.arrays["left_indices"]), truth.left, rtol=1e-8)
        np.testing.assert_allclose(truth.at(done.arrays["right_indices"]), truth.right, rtol=1e-8)


def test_a_large_p(job):
    assert_true(job(WALK, 8, normalize=False, p=40.0), WALK, 8, normalize=False, p=40.0)


def test_a_series_joined_with_itself_is_all_zeros(job):
    assert not job(WALK, 10, against=WALK).distances.any()


def test_windows_without_a_neighbour_are_missing(job):
    done = job(NOISE[:12], 10)
    assert np.isinf(done.distances).all()
    assert done.answer["summary"]["motif"] is None
    assert done.answer["summary"]["missing_windows"] == 3


def test_p_of_a_z_normalised_distance_is_not_used(job):
    assert_true(job(WALK, 10, p=1.0), WALK, 10)


def test_windows_with_fewer_neighbours_than_asked_for_are_counted(job):
    done = job(NOISE[:14], 10, k=2)
    assert any("fewer than 2 neighbours" in warning for warning in done.heard.warnings)


def test_a_window_that_does_not_fit_is_the_users_mistake(job):
    with pytest.raises(InvalidInput, match="200 samples does not fit into 'series', which has 150"):
        job(WALK, 200)
