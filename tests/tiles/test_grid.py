"""Every pair of windows that counts is in one tile, no tile is too large, and what is visited early is spread evenly."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiles.conftest import counted
from workers.matrix_profile.tiles import grid as module
from workers.matrix_profile.tiles.grid import Grid, scattered

LENGTHS = st.integers(1, 200)
JOINS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cells_of(tile, l_b):
    """(i, j) of every pair in a tile, from its definition."""
    i, k = np.meshgrid(
        np.arange(tile.row, tile.row + tile.rows), np.arange(tile.diagonal, tile.diagonal + tile.diagonals)
    )
    inside = (i + k >= 0) & (i + k < l_b)
    return i[inside], (i + k)[inside]


def assert_covers(l_a, l_b, m, self_join):
    grid, visits = Grid(l_a, l_b, m, self_join=self_join), np.zeros((l_a, l_b), dtype=int)
    for tile in grid.tiles:
        i, j = cells_of(tile, l_b)
        assert len(i) == tile.cells(l_b) > 0
        assert len(i) <= grid.most_cells
        first, stop = tile.columns(l_b)
        assert first <= j.min() <= j.max() < stop
        visits[i, j] += 1
    np.testing.assert_array_equal(visits, counted(l_a, l_b, m, self_join=self_join))
    assert grid.cells == visits.sum()


@JOINS
@given(count=LENGTHS, m=st.integers(3, 60))
def test_a_self_join_is_covered_once(small_tiles, count, m):
    assert_covers(count, count, m, True)


@JOINS
@given(l_a=LENGTHS, l_b=LENGTHS)
def test_an_ab_join_is_covered_once(small_tiles, l_a, l_b):
    assert_covers(l_a, l_b, 8, False)


@settings(max_examples=30, deadline=None)
@given(l_a=st.integers(1, 3000), l_b=st.integers(1, 3000))
def test_so_is_one_in_tiles_of_ordinary_size(l_a, l_b):
    grid = Grid(l_a, l_b, 8, self_join=False)
    assert sum(tile.cells(l_b) for tile in grid.tiles) == l_a * l_b


@pytest.mark.parametrize(
    ("l_a", "l_b"), [(1 << 15, 1 << 15), (1 << 17, 1 << 17), (1 << 20, 1 << 20), (3000, 1 << 20), (1 << 20, 3000)]
)
@pytest.mark.parametrize("self_join", [True, False])
def test_large_joins_have_tiles_enough_none_above_its_bound(l_a, l_b, self_join):
    if self_join and l_a != l_b:
        return
    grid = Grid(l_a, l_b, 100, self_join=self_join)
    sizes = [tile.cells(l_b) for tile in grid.tiles]
    assert sum(sizes) == grid.cells
    assert len(sizes) >= 16
    assert max(sizes) <= grid.most_cells <= module.TILE_SECONDS * module.CELLS_PER_SECOND
    assert max(sizes[-4:]) <= max(sizes[:4])
    assert len(sizes) < 3 * grid.cells / grid.most_cells + 100, "not many that are nearly empty"


def test_a_slower_kernel_gets_smaller_tiles():
    one, other = (Grid(1 << 18, 1 << 18, 100, self_join=True, cells_per_second=speed) for speed in (2.5e9, 2.5e8))
    assert max(tile.cells(1 << 18) for tile in other.tiles) <= 2.5e8 * module.TILE_SECONDS < one.most_cells


@pytest.mark.parametrize(("l_a", "l_b", "self_join"), [(600, 600, True), (600, 600, False), (250, 600, False)])
def test_at_any_time_each_window_has_met_about_equally_many(small_tiles, l_a, l_b, self_join):
    """To within what two stripes add: counting both roles of a self-join's windows, and the shorter side of an AB-join."""
    grid, met, most = Grid(l_a, l_b, 8, self_join=self_join), np.zeros(l_a, dtype=int), 0
    for tile in grid.tiles:
        i, j = cells_of(tile, l_b)
        np.add.at(met, i, 1)
        if self_join:
            np.add.at(met, j, 1)
        inner = met[3:-3]  # the exclusion zone takes a little from the inner ones
        most = max(most, inner.max() - inner.min())
    assert most <= 4 * grid.diagonals
    assert 4 * grid.diagonals < met.max() / 2


@pytest.mark.parametrize("self_join", [True, False])
def test_a_quarter_of_the_cells_reaches_all_of_the_matrix(small_tiles, self_join):
    """Each window has met others in each quarter of the series."""
    grid, seen = Grid(1200, 1200, 8, self_join=self_join), np.zeros((1200, 1200), dtype=bool)
    for tile in grid.tiles:
        if seen.sum() > grid.cells / 4:
            break
        seen[cells_of(tile, 1200)] = True
    assert seen.sum() < grid.cells / 3
    quarters = np.add.reduceat(seen | (seen.T & self_join), [0, 300, 600, 900], axis=1)
    assert quarters.min() > 0


def test_numbers_are_scattered():
    assert scattered(8) == [0, 4, 2, 6, 1, 5, 3, 7]
    assert scattered(1) == [0]
    assert scattered(0) == []


@given(st.integers(1, 500), st.data())
def test_the_first_few_of_them_leave_no_large_gap(count, data):
    numbers = scattered(count)
    assert sorted(numbers) == list(range(count))
    some = data.draw(st.integers(1, count))
    gaps = np.diff([*sorted(numbers[:some]), count])
    assert gaps.max() <= 2 * count / some + 2
