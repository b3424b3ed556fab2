"""A join is what the definition says, whoever computes its tiles and in whatever order."""

import random

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import NOISE, OTHER, WALK, with_
from tests.tiles.conftest import SlowHands, assert_true
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.hands import ThreadHands
from workers.matrix_profile.tiles.join import join
from workers.reporting import Silent

SERIES = {
    "a walk": WALK,
    "noise": NOISE,
    "a gap": with_(WALK, slice(60, 63), np.nan),
    "gaps at both ends": with_(with_(WALK, slice(0, 5), np.nan), -1, np.inf),
    "constant stretches": with_(with_(WALK, slice(20, 50), 3.25), slice(90, 120), -1.0),
    "only gaps": np.full(60, np.nan),
    "all constant": np.full(60, 0.1),
}
HANDS = {"slow": SlowHands, "one thread": lambda: ThreadHands(1), "three threads": lambda: ThreadHands(3)}
M = 12


@pytest.mark.parametrize("hands", HANDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", SERIES)
def test_a_self_join(small_tiles, case, normalize, hands):
    joined = join(Problem(SERIES[case], None, M, normalize), HANDS[hands](), Silent())
    assert joined.tiles > 1
    assert joined.other is None
    assert_true(joined.profile, SERIES[case], M, normalize=normalize)


@pytest.mark.parametrize("hands", HANDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("case", SERIES)
def test_an_ab_join_gives_both_profiles(small_tiles, case, normalize, hands):
    a, b = SERIES[case], with_(OTHER, 100, np.nan)
    joined = join(Problem(a, b, M, normalize), HANDS[hands](), Silent())
    assert_true(joined.profile, a, M, against=b, normalize=normalize)
    assert_true(joined.other, b, M, against=a, normalize=normalize)
    turned = join(Problem(b, a, M, normalize), HANDS[hands](), Silent())
    np.testing.assert_allclose(turned.profile.distances, joined.other.distances, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("count", [M, M + 1, M + 3, M + 4, M + 5])
def test_series_too_short_for_any_pair(count, normalize):
    """Windows within the exclusion zone of each other, ⌈12/4⌉ = 3, do not count: of 4 windows none has a neighbour."""
    joined = join(Problem(WALK[:count], None, M, normalize), ThreadHands(1), Silent())
    assert_true(joined.profile, WALK[:count], M, normalize=normalize)
    assert np.isfinite(joined.profile.distances).any() == (count - M + 1 > 4)
    assert (joined.tiles > 0) == (joined.cells > 0) == (count - M + 1 > 4)


@pytest.mark.parametrize("counts", [(M, M), (M, 100), (100, M), (M + 1, M + 2)])
@pytest.mark.parametrize("normalize", [True, False])
def test_single_candidates(counts, normalize):
    a, b = WALK[: counts[0]], OTHER[: counts[1]]
    joined = join(Problem(a, b, M, normalize), ThreadHands(2), Silent())
    assert_true(joined.profile, a, M, against=b, normalize=normalize)
    assert_true(joined.other, b, M, against=a, normalize=normalize)


@pytest.mark.parametrize("b", [None, OTHER], ids=["self", "AB"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_order_of_tiles_does_not_matter(small_tiles, normalize, b):
    def shuffled(seed):
        return lambda tiles: random.Random(seed).sample(tiles, len(tiles))

    first, *others = (join(Problem(WALK, b, M, normalize), SlowHands(shuffled(n)), Silent()) for n in range(4))
    for other in others:
        for name in ("distances", "indices", "left", "right"):
            np.testing.assert_array_equal(getattr(first.profile, name), getattr(other.profile, name))


def test_progress_says_which_share_of_the_pairs_is_done(small_tiles, listener):
    joined = join(Problem(WALK, None, M, True), SlowHands(), listener)
    assert [done for done, *_ in listener.progressed] == list(range(1, joined.tiles + 1))
    assert {(total, unit) for _, total, unit, _ in listener.progressed} == {(joined.tiles, "tiles")}
    assert listener.shares == sorted(listener.shares)
    assert listener.shares[-1] == 1.0
    assert all(eta >= 0 for *_, eta in listener.progressed)
    assert listener.progressed[-1][3] == 0


@pytest.mark.parametrize("b", [None, OTHER], ids=["self", "AB"])
@pytest.mark.parametrize("normalize", [True, False])
def test_known_pairs_leave_less_to_be_found(small_tiles, normalize, b):
    class Counting(SlowHands):
        found = 0

        def each(self, tiles, work):
            for tile, found in super().each(tiles, work):
                self.found += len(found.rows) + len(found.columns)
                yield tile, found

    problem, plain, told = Problem(with_(WALK, 30, np.nan), b, M, normalize), Counting(), Counting()
    first = join(problem, plain, Silent())
    rows = np.arange(problem.l_a)
    known = (
        np.concatenate([rows, rows, [5, -1, 3, 10**6]]),
        np.concatenate([first.profile.indices[:, 0], rows[::-1], [6, 2, 10**6, 3]]),
    )
    again = join(problem, told, Silent(), known=known)
    np.testing.assert_array_equal(again.profile.distances, first.profile.distances)
    assert_true(again.profile, problem.a, M, against=b, normalize=normalize)
    assert told.found < plain.found / 1.5


def test_a_tile_that_never_came_back_is_no_result(small_tiles):
    with pytest.raises(RuntimeError, match="were not computed"):
        join(Problem(WALK, None, M, True), SlowHands(lambda tiles: tiles[:-1]), Silent())


def test_what_goes_wrong_in_reporting_stops_the_hands(small_tiles):
    closed = []

    class Watched(SlowHands):
        def each(self, tiles, work):
            try:
                yield from super().each(tiles, work)
            finally:
                closed.append(True)

    class Broken(Silent):
        def progress(self, *told):
            raise ConnectionError("cancelled")

    with pytest.raises(ConnectionError) as caught:
        join(Problem(WALK, None, M, True), Watched(), Broken())
    assert closed, "while the error is still held"
    del caught


def test_ordinary_tiles_and_small_ones_agree(monkeypatch, listener):
    """At a length where the grid has several tiles of its own accord."""
    values = np.random.default_rng(5).standard_normal(6000).cumsum()
    whole = join(Problem(values, None, 50, True), ThreadHands(2), listener)
    assert whole.tiles > 2
    rows = np.array([0, 777, 3001, 5950])
    windows = np.lib.stride_tricks.sliding_window_view(values.astype(np.longdouble), 50)
    for row in rows:
        apart = oracle.shape_distances(windows[row], windows)
        apart[max(0, row - 13) : row + 14] = np.inf
        assert whole.profile.distances[row, 0] == pytest.approx(float(apart.min()), rel=1e-9)
        assert whole.profile.indices[row, 0] == apart.argmin()


@pytest.mark.parametrize("normalize", [True, False])
def test_windows_of_b_need_not_be_asked_for(normalize):
    """The profile of a is the same, to the last bit, and costs less."""
    a, b = np.random.default_rng(3).standard_normal((2, 400)).cumsum(axis=1)
    both = join(Problem(a, b[:300], M, normalize), ThreadHands(1), Silent())
    one = join(Problem(a, b[:300], M, normalize, both=False), ThreadHands(1), Silent())
    assert one.other is None
    assert both.other is not None
    assert np.array_equal(one.profile.distances, both.profile.distances)
    assert np.array_equal(one.profile.indices, both.profile.indices)
