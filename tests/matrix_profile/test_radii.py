"""Which windows are compared in the search for a consensus, and that nothing is lost by leaving out the others."""

import numpy as np
import pytest

from tests import oracle
from workers.matrix_profile import radii as module
from workers.matrix_profile.choosing import lowest, rounds, runs
from workers.matrix_profile.radii import Radii
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.pairs import Ready
from workers.matrix_profile.windows import Windows

M = 8
RNG = np.random.default_rng(4)
SERIES = [RNG.standard_normal(n).cumsum() for n in (90, 60, 75, 110)]
SERIES[2][30:32] = np.nan
SERIES[3][50:70] = 1.5


@pytest.mark.parametrize("count", range(2, 12))
def test_in_each_round_a_series_comes_once_and_all_pairs_come_in_the_end(count):
    table = rounds(count)
    pairs = [pair for each in table for pair in each]
    assert sorted(pairs) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for each in table:
        numbers = [number for pair in each for number in pair]
        assert len(set(numbers)) == len(numbers) >= count - 1


def test_stretches_hold_all_windows_and_end_where_a_gap_is_wide():
    assert list(runs(np.array([3, 4, 9, 30, 31, 60]), 10)) == [(3, 10), (30, 32), (60, 61)]
    assert list(runs(np.array([], dtype=np.int64), 10)) == []


def test_the_least_bounds_that_do_not_overlap():
    bounds = np.array([5.0, 1.0, 1.1, 9.0, 8.0, 9.5, 2.0, np.inf])
    assert lowest(bounds, 3, 3).tolist() == [1, 6, 4]
    assert lowest(np.full(5, np.inf), 3, 4).tolist() == []


@pytest.mark.parametrize("gap", [0, 20])
@pytest.mark.parametrize("known", [0.4, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 2.0}], ids=str)
def test_what_may_have_a_lesser_radius_is_found_and_the_rest_is_left_out(monkeypatch, asked, known, gap):
    """known: a radius that is known already, as a share of the median one."""
    monkeypatch.setattr(module, "GAP", gap)
    normalize = asked.get("normalize", True)
    treated = scaled(SERIES, normalize=normalize)
    ready = [Ready(Windows(each, M), normalize=normalize, threads=1) for each in treated.series]
    radii, truth = Radii(treated.series, ready, normalize=normalize), oracle.radii(SERIES, M, **asked)
    everything = np.concatenate(truth)
    radius = known * np.median(everything[np.isfinite(everything)])
    radii.radius = float(treated.back(np.asarray(radius)))
    for pairs in rounds(4):
        for a, b in pairs:
            for part in radii.parts(a, b):
                radii.merge(part, compute(radii.work(part)))
            radii.learn(a, b, radii.found(a, b), radii.found(b, a))
    for bounds, true in zip(radii.bounds, truth, strict=True):
        low = true < radius * (1 - 1e-9)
        np.testing.assert_allclose(treated.distances(bounds[low]), true[low], rtol=1e-9)
        assert (treated.distances(bounds[~low]) >= radius * (1 - 1e-9)).all()
