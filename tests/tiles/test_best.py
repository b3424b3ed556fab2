"""What tiles find is put together, in whatever order it comes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiles.conftest import found_slowly
from workers.matrix_profile.tiles.best import Best, Nearest, Problem
from workers.matrix_profile.tiles.grid import Grid
from workers.matrix_profile.tiles.tile import Tile

RNG = np.random.default_rng(4)
A, B = RNG.integers(0, 4, 90).astype(float), RNG.integers(0, 4, 70).astype(float)  # many equal distances


@pytest.mark.parametrize("b", [None, B], ids=["self", "AB"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_order_of_merging_does_not_matter(small_tiles, b, normalize):
    problem = Problem(A, b, 8, normalize)
    tiles = Grid(problem.l_a, problem.l_b, 8, self_join=b is None).tiles
    assert len(tiles) > 2
    results = []
    for seed in range(4):
        empty, best = Best.none(problem), Best.none(problem)
        for number in np.random.default_rng(seed).permutation(len(tiles)):
            best.merge(found_slowly(empty.work(tiles[number])))
        results.append(best)
    for best in results[1:]:
        for role in ("rows", "columns"):
            one, other = getattr(best, role), getattr(results[0], role)
            np.testing.assert_array_equal(one.similarity, other.similarity)
            np.testing.assert_array_equal(one.neighbors, other.neighbors)


OFFERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=20)


@given(OFFERS)
def test_the_most_similar_is_kept_and_of_equals_the_first(offers):
    windows, similarity, neighbors = (np.array(each) for each in zip(*offers, strict=True))
    at_once, one_by_one = Nearest.none(4), Nearest.none(4)
    at_once.offer_all(windows, similarity.astype(float), neighbors)
    for number in range(len(offers)):
        here = slice(number, number + 1)
        one_by_one.offer(windows[here], similarity[here].astype(float), neighbors[here])
    for window in range(4):
        best = min(((-s, n) for w, s, n in offers if w == window), default=(np.inf, -1))
        for nearest in (at_once, one_by_one):
            assert (-nearest.similarity[window], nearest.neighbors[window]) == best


def test_a_tile_takes_along_what_it_covers_and_no_more():
    best = Best.none(Problem(A, B, 8, True))
    best.seed(np.array([12]), np.array([30]), np.array([0.5]))
    work = best.work(Tile(row=10, rows=5, diagonal=15, diagonals=10))
    np.testing.assert_array_equal(work.row_values, A[10 : 15 + 7])
    assert work.first_column == 25
    np.testing.assert_array_equal(work.column_values, B[25 : 39 + 7])
    assert work.row_similarity.tolist() == [-np.inf, -np.inf, 0.5, -np.inf, -np.inf]
    assert work.column_similarity[5] == 0.5
    assert len(work.column_similarity) == 14
    assert len(pickle.dumps(work)) < 1500
    work.row_similarity[0] = 1.0
    assert best.rows.similarity[10] == -np.inf, "a copy"


def test_a_tile_at_the_edge_is_clipped():
    best = Best.none(Problem(A, B, 8, True))
    work = best.work(Tile(row=0, rows=83, diagonal=-82, diagonals=144))
    assert work.first_column == 0
    assert len(work.column_values) == len(B)
