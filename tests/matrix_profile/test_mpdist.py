"""An MPdist is the one the definition gives, by our own kernel or made by STUMPY out of verified joins."""

import json

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from workers.matrix_profile.tiles.grid import Grid


@pytest.fixture
def mpdist(compute):
    def start(a, b, window: int, **asked):
        return compute("mpdist", {"a": [a], "b": [b]}, window=window, **asked)

    return start


def distance(done) -> float:
    said = json.loads((done.folder / "result.json").read_text())
    assert next(iter(said)) == "distance"
    value = said["distance"]
    assert value == done.answer["summary"]["distance"]
    header, line = (done.folder / "result.csv").read_text().splitlines()
    assert header == "distance"
    assert (float(line) if line else None) == value
    return np.inf if value is None else value


def assert_true(done, a, b, window, **asked):
    truth = oracle.mpdist(a, b, window, **asked)
    values = np.concatenate([each.distances for each in (oracle.matrix_profile(a, window, against=b, **only(asked)),)])
    scale = np.max(values[np.isfinite(values)], initial=0.0) or 1.0
    assert distance(done) == pytest.approx(truth, rel=1e-7, abs=1e-7 * scale)


def only(asked):
    return {name: value for name, value in asked.items() if name in ("normalize", "p")}


DISTANCES = [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.0, 1.5))]
TILES = {"implementation": "tiles"}
OF_TILES = [{}, {"normalize": False, "p": 2.0}]


def test_the_documented_example(mpdist):
    done = mpdist([-11.1, 23.4, 79.5, 1001.0], [584.0, -11, 23, 79, 1001, 0, -19], 3)
    assert distance(done) == pytest.approx(0.00019935236191097894, abs=1e-9)


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
@pytest.mark.parametrize(
    "which", [{}, {"percentage": 0.5}, {"percentage": 1.0}, {"k": 0}, {"k": 7}, {"k": 10_000}], ids=str
)
def test_every_distance_and_choice(mpdist, asked, which):
    assert_true(mpdist(WALK, OTHER, 12, **asked, **which), WALK, OTHER, 12, **asked, **which)


@pytest.mark.parametrize("asked", OF_TILES, ids=str)
@pytest.mark.parametrize(
    "which", [{}, {"percentage": 0.5}, {"percentage": 1.0}, {"k": 0}, {"k": 7}, {"k": 10_000}], ids=str
)
def test_every_choice_in_tiles(mpdist, asked, which):
    done = mpdist(WALK, OTHER, 12, plan=TILES, **asked, **which)
    assert distance(done) == pytest.approx(oracle.mpdist(WALK, OTHER, 12, **asked, **which), rel=1e-12)
    assert done.answer["summary"]["verification"]["rows_checked"] >= 16
    provenance = done.answer["provenance"]
    assert (provenance["implementation"], provenance["function"]) == ("tiles", "tiles.mpdist")
    assert provenance["tiles"] == provenance["pieces"]
    assert not (done.folder / "tiles.checkpoint").exists()


def test_one_pass_gives_both_joins(mpdist):
    """As many tiles as one join has."""
    a, b = np.random.default_rng(1).standard_normal((2, 6000)).cumsum(axis=1)
    done = mpdist(a, b, 30, plan=TILES)
    told = [each[:3] for each in done.heard.progressed]
    assert told == [(number, len(told), "tiles") for number in range(1, len(told) + 1)]
    grid = Grid(5971, 5971, 30, self_join=False)
    assert len(told) == len(grid.tiles)
    assert distance(done) == pytest.approx(distance(mpdist(b, a, 30)), abs=1e-9)


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
def test_in_pieces_on_a_cluster(mpdist, spread, asked):
    done = mpdist(WALK, OTHER, 12, plan=spread, **asked)
    assert_true(done, WALK, OTHER, 12, **asked)
    assert done.answer["provenance"]["function"] == ("stumpy.aampdisted" if asked else "stumpy.mpdisted")
    assert done.answer["provenance"]["pieces"] == 4
    assert [told[:3] for told in done.heard.progressed] == [(number, 4, "pieces") for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("case", [case for case in HARD if case != "values near the largest"])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_hard_series(mpdist, case, asked):
    other = with_(NOISE[:90], slice(30, 45), 2.0)
    for which in ({}, {"k": 3}):
        assert_true(mpdist(HARD[case], other, 10, **asked, **which), HARD[case], other, 10, **asked, **which)


@pytest.mark.parametrize("case", [case for case in HARD if case != "values near the largest"])
@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_hard_series_in_tiles(mpdist, case, asked):
    other = with_(NOISE[:90], slice(30, 45), 2.0)
    for which in ({}, {"k": 3}, {"percentage": 1.0}):
        found = distance(mpdist(HARD[case], other, 10, plan=TILES, **asked, **which))
        scale = np.sqrt(10) if not asked else np.nanmax(np.abs(HARD[case][np.isfinite(HARD[case])]), initial=1.0)
        truth = oracle.mpdist(HARD[case], other, 10, **asked, **which)
        assert found == pytest.approx(truth, rel=1e-8, abs=1e-8 * scale)


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_series_without_a_distance(mpdist, plan):
    done = mpdist(np.full(60, np.nan), WALK, 10, plan=plan)
    assert distance(done) == np.inf
    assert done.answer["summary"]["distance"] is None
    assert np.isnan(done.arrays["distance"])
    assert "no distance" in done.heard.warnings[-1]


def test_the_summary_says_which_value_it_is(mpdist):
    done = mpdist(WALK, OTHER, 12)
    summary = done.answer["summary"]
    assert summary["k"] == 13  # ⌈0.05 · (150 + 110)⌉
    assert summary["values"] == 139 + 99
    assert summary["verification"]["rows_checked"] >= 16
    assert mpdist(WALK, OTHER, 12, k=13).answer["summary"]["distance"] == summary["distance"]
    json.dumps(done.answer, allow_nan=False)
