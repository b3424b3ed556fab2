"""A multidimensional profile is the one the definition gives, on ordinary data and where arithmetic is hard."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, NOISE, WALK, with_
from workers.failures import InvalidInput
from workers.matrix_profile import multiverify
from workers.matrix_profile.verify import Unverifiable

RNG = np.random.default_rng(17)
THREE = [WALK, RNG.standard_normal(150).cumsum(), with_(RNG.standard_normal(150), slice(100, 104), np.nan)]


@pytest.fixture
def profile(compute):
    def start(series, window: int, **asked):
        return compute("multidimensional_profile", {"series": series}, window=window, **asked)

    return start


def assert_true(done, series, window, tolerance=1e-7, **asked):
    truth = oracle.multidimensional_profile(series, window, **asked)
    scale = np.max(truth.distances[np.isfinite(truth.distances)], initial=0.0) or 1.0
    close = {"rtol": tolerance, "atol": tolerance * scale}
    np.testing.assert_allclose(done.arrays["distances"], truth.distances, **close)
    np.testing.assert_allclose(truth.at(done.arrays["indices"]), truth.distances, **close)


DISTANCES = [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.0, 1.5))]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@pytest.mark.parametrize(
    "order", [{}, {"discords": True}, {"include": [2]}, {"include": [2, 0], "discords": True}], ids=str
)
def test_every_distance_and_order(profile, distance, order):
    assert_true(profile(THREE, 12, **distance, **order), THREE, 12, **distance, **order)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_in_pieces_on_a_cluster(profile, spread, distance):
    done = profile(THREE, 12, plan=spread, **distance)
    assert_true(done, THREE, 12, **distance)
    assert done.answer["provenance"]["function"] == ("stumpy.maamped" if distance else "stumpy.mstumped")
    assert done.answer["provenance"]["pieces"] == 2
    assert done.answer["summary"]["verification"]["rows_recomputed"] == 0


@pytest.mark.parametrize("case", [case for case in HARD if case != "values near the largest"])
@pytest.mark.parametrize("distance", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_hard_dimensions_beside_an_ordinary_one(profile, case, distance):
    series = [NOISE[: len(HARD[case])], HARD[case], WALK[: len(HARD[case])]]
    assert_true(profile(series, 10, **distance), series, 10, **distance)
    assert_true(profile(series, 10, include=[1], **distance), series, 10, include=[1], **distance)


@pytest.mark.parametrize("distance", [{}, {"normalize": False, "p": 3.0}], ids=str)
def test_bursts_in_a_long_series(profile, distance):
    """Where a running sum has passed a burst it is off for good; no row may keep what it says."""
    series = [np.random.default_rng(n).standard_normal(600) for n in range(3)]
    series[0][100], series[1][300], series[2][:200] = 1e6, -1e9, series[2][:200] * 1e7
    assert_true(profile(series, 16, **distance), series, 16, **distance)


@pytest.mark.parametrize("seed", [108, 111, 115])
@pytest.mark.parametrize("spoiled", ["sentinel", "burst"])
@pytest.mark.parametrize("order", [{}, {"include": [1]}, {"discords": True}], ids=str)
def test_no_row_in_doubt_is_left_after_a_large_value(profile, seed, spoiled, order):
    """Of many windows a large value puts in doubt, few are wrong, and those at random places."""
    rng = np.random.default_rng(seed)
    series = [rng.standard_normal(200).cumsum() for _ in range(3)]
    if spoiled == "sentinel":
        series[0][100] = 999999999.0
    else:
        series[0][60:64] += 1e8 * rng.standard_normal(4)
    assert_true(profile(series, 20, **order), series, 20, **order)


def test_large_values_in_two_of_four_dimensions(profile):
    rng = np.random.default_rng(29)
    series = [*rng.standard_normal((4, 200)).cumsum(axis=1)]
    series[1][100] = series[3][100] = 999999999.0
    assert_true(profile(series, 20), series, 20)
    assert_true(profile(series, 20, include=[2]), series, 20, include=[2])


def test_a_burst_in_the_longer_series_of_two(profile):
    rng = np.random.default_rng(31)
    series = [rng.standard_normal(500), rng.standard_normal(500).cumsum()]
    series[0][166:171] += 1e8 * rng.standard_normal(5)
    assert_true(profile(series, 50), series, 50)


def decades(rng):
    return rng.standard_normal(200) * 10.0 ** np.repeat(rng.integers(-9, 9, 11), 20)[:200]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@pytest.mark.parametrize("order", [{}, {"include": [1]}], ids=str)
def test_where_it_was_computed_does_not_show(profile, spread, distance, order):
    """Amplitudes over 18 decades: pieces add up otherwise than a whole, but the neighbours are no farther."""
    rng = np.random.default_rng(2)
    walk, steps, noise, others = rng.standard_normal(200).cumsum(), decades(rng), rng.standard_normal(200), decades(rng)
    series = [walk, steps, noise, others]
    here = profile(series, 16, **distance, **order).arrays["distances"]
    there = profile(series, 16, plan=spread, **distance, **order).arrays["distances"]
    np.testing.assert_allclose(there, here, rtol=1e-8, atol=0.0 if distance else 4e-8)
    assert_true(profile(series, 16, **distance, **order), series, 16, **distance, **order)


def test_windows_in_doubt_without_time_to_compute_them_fail(profile, monkeypatch):
    """The doubt alone suffices: whether a neighbour was missed cannot be seen."""
    rng = np.random.default_rng(111)
    series = [rng.standard_normal(200).cumsum() for _ in range(3)]
    series[0][100] = 999999999.0
    monkeypatch.setattr(multiverify, "allowed_rows", lambda *sizes: 150)
    with pytest.raises(Unverifiable, match="may have spoilt"):
        profile(series, 20)


def test_one_dimension_is_a_matrix_profile(profile):
    np.testing.assert_allclose(
        profile([WALK], 12).arrays["distances"][0], oracle.matrix_profile(WALK, 12).distances[:, 0], atol=1e-7
    )


def test_many_dimensions_with_an_offset(profile):
    series = [np.random.default_rng(n).standard_normal(90) + 10.0**n for n in range(10)]
    assert_true(profile(series, 8), series, 8)


def test_what_cannot_be_computed_is_the_users_mistake(profile):
    with pytest.raises(InvalidInput, match="different lengths"):
        profile([WALK, WALK[:100]], 10)
    with pytest.raises(InvalidInput, match="no dimension 3"):
        profile(THREE, 10, include=[3])
    with pytest.raises(InvalidInput, match="does not fit"):
        profile(THREE, 151)


def test_a_dead_dimension_is_answered_with_a_warning(profile):
    done = profile([WALK, np.full(150, 2.0)], 10)
    assert not done.arrays["distances"][0].any()
    assert any("constant" in warning for warning in done.heard.warnings)


DAYS = np.arange(150) * 86_400_000_000


def test_the_four_files_say_the_same(profile):
    done = profile(THREE, 12, include=[2], times={"series": DAYS})
    distances, indices = done.arrays["distances"], done.arrays["indices"]
    assert np.isinf(distances).any()
    said = json.loads((done.folder / "result.json").read_text())
    plain = np.where(np.isfinite(distances), distances, None)
    assert said["distances"] == plain.tolist()
    assert said["indices"] == indices.tolist()
    assert said["window"] == 12
    assert said["at"][1] == "1970-01-02T00:00:00Z"
    assert said["summary"] == done.answer["summary"]

    table = pa.parquet.read_table(done.folder / "result.parquet")
    assert table.column_names == [
        "index",
        "time",
        *(f"distance_{n}" for n in (1, 2, 3)),
        *(f"neighbor_{n}" for n in (1, 2, 3)),
    ]
    with (done.folder / "result.csv").open() as stored:
        rows = list(csv.DictReader(stored))
    for number in range(3):
        assert table[f"distance_{number + 1}"].to_pylist() == plain[number].tolist()
        assert table[f"neighbor_{number + 1}"].to_pylist() == indices[number].tolist()
        cells = [row[f"distance_{number + 1}"] for row in rows]
        assert [float(cell) if cell else None for cell in cells] == plain[number].tolist()
    np.testing.assert_array_equal(done.arrays["time_us"], DAYS[:139])


def test_the_summary_names_a_motif_and_a_discord_for_each_number_of_dimensions(profile):
    done = profile(THREE, 12, times={"series": DAYS})
    summary, distances = done.answer["summary"], done.arrays["distances"]
    for number, (motif, discord) in enumerate(zip(summary["motif"], summary["discord"], strict=True)):
        found = distances[number][np.isfinite(distances[number])]
        assert motif["distance"] == found.min() == distances[number, motif["index"]]
        assert discord["distance"] == found.max()
        assert motif["dimensions"] == number + 1 == len(motif["members"])
        apart = [oracle.matrix_profile(series, 12).table[motif["index"], motif["neighbor"]] for series in THREE]
        assert motif["members"] == sorted(np.argsort(apart)[: number + 1].tolist())
        assert motif["at"].startswith("1970-")
    assert summary["missing_windows"] == [0, 0, 15]
    assert set(summary["verification"]) == {"rows_checked", "max_abs_difference", "rows_recomputed"}
    assert summary["verification"]["rows_checked"] >= 8
    json.dumps(done.answer, allow_nan=False)
