"""A job in tiles gives the profile of the definition, as one by STUMPY does; and it needs no mending."""

import numpy as np
import pytest

from tests.matrix_profile.hard import HARD, NOISE, OTHER, WALK, with_
from tests.matrix_profile.test_truth import FINE, assert_true
from workers.failures import InvalidInput

TILES = {"implementation": "tiles"}
EUCLIDEAN = {"normalize": False}


@pytest.mark.parametrize("against", [None, OTHER], ids=["self", "AB"])
@pytest.mark.parametrize("distance", [{}, EUCLIDEAN], ids=str)
def test_where_it_comes_from_is_said(job, distance, against):
    done = job(WALK, 12, against=against, plan=TILES, **distance)
    assert_true(done, WALK, 12, against=against, tolerance=1e-12, **distance)
    provenance, checked = done.answer["provenance"], done.answer["summary"]["verification"]
    assert provenance["implementation"] == "tiles"
    assert provenance["function"] == ("tiles.self_join" if against is None else "tiles.ab_join")
    assert (provenance["tiles_resumed"], provenance["careful_cells"]) == (0, 0)
    assert provenance["tiles"] == len(done.heard.progressed)
    assert {unit for _, _, unit, _ in done.heard.progressed} == {"tiles"}
    assert checked["rows_checked"] > 0
    assert checked["rows_recomputed"] == 0
    assert not list(done.folder.glob("*.checkpoint*"))  # it is of no use any more


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("distance", [{}, EUCLIDEAN], ids=str)
def test_hard_series(job, case, distance):
    if distance and case == "values near the largest":
        with pytest.raises(InvalidInput, match="divide the series first"):
            job(HARD[case], 10, plan=TILES, **distance)
    else:
        assert_true(job(HARD[case], 10, plan=TILES, **distance), HARD[case], 10, **distance)


@pytest.mark.parametrize("case", HARD)
def test_hard_series_joined_with_another(job, case):
    other = with_(with_(NOISE[:100], slice(30, 45), 2.0), 60, np.nan)
    assert_true(job(HARD[case], 10, against=other, plan=TILES), HARD[case], 10, against=other)
    assert_true(job(other, 10, against=HARD[case], plan=TILES), other, 10, against=HARD[case])


@pytest.mark.parametrize("case", FINE)
@pytest.mark.parametrize("window", [5, 8, 20, 40])
def test_windows_that_vary_by_a_few_ulps(job, case, window):
    assert_true(job(HARD[case], window, plan=TILES), HARD[case], window)
