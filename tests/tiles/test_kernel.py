"""What the kernel finds in tiles of any shape, against a brute force in extended precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiles.brute import assert_found, table, within, work
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.tile import Tile

METRICS = pytest.mark.parametrize("normalize", [True, False], ids=["normalised", "p=2"])


def walk(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n).cumsum()


def check(a, b, m, tile, normalize):
    l_a, l_b = len(a) - m + 1, len(b) - m + 1
    found = compute(work(a, b, m, tile, normalize=normalize))
    assert found is not None
    distance = np.where(within(tile, l_a, l_b), table(a, b, m, normalize), np.inf)
    assert_found(found, distance, m, normalize)
    return found


@METRICS
def test_a_self_joins_upper_triangle_in_one_tile(normalize):
    series, m = walk(700), 20
    l = len(series) - m + 1  # noqa: E741
    check(series, series, m, Tile(0, l, 6, l - 6), normalize)


@METRICS
def test_an_ab_join_in_one_tile_reaches_both_corners(normalize):
    a, b, m = walk(330, 1), walk(610, 2), 17
    l_a, l_b = len(a) - m + 1, len(b) - m + 1
    tile = Tile(0, l_a, 1 - l_a, l_a + l_b - 1)
    assert tile.cells(l_b) == l_a * l_b
    check(a, b, m, tile, normalize)


@METRICS
def test_several_tiles_together_find_what_one_finds(normalize):
    a, b, m = walk(900, 3), walk(1400, 4), 25
    l_a, l_b = len(a) - m + 1, len(b) - m + 1
    best, nearest = np.full(l_a, -np.inf), np.full(l_a, -1)
    cells = 0
    for row in range(0, l_a, 300):
        rows = min(300, l_a - row)
        for diagonal in range(-l_a + 1, l_b, 577):
            tile = Tile(row, rows, diagonal, 577)
            found = compute(work(a, b, m, tile, normalize=normalize, row_similarity=best))
            best[found.rows], nearest[found.rows] = found.row_similarity, found.row_neighbors
            cells += tile.cells(l_b)
    assert cells == l_a * l_b
    distance = table(a, b, m, normalize)
    np.testing.assert_allclose(
        distance[np.arange(l_a), nearest].astype(float), distance.min(axis=1).astype(float), atol=1e-9
    )


@METRICS
def test_a_tile_that_holds_no_cell_finds_nothing(normalize):
    a, b, m = walk(100, 1), walk(60, 2), 10
    for tile in (Tile(0, 5, 51, 20), Tile(50, 20, -20, 5), Tile(90, 1, -40, 10)):
        found = compute(work(a, b, m, tile, normalize=normalize))
        check_cells = tile.cells(51)
        assert (len(found.rows) == 0) == (check_cells == 0)


@METRICS
def test_windows_may_be_longer_than_the_tile(normalize):
    a, b, m = walk(420, 5), walk(405, 6), 400
    check(a, b, m, Tile(3, 9, -7, 12), normalize)


@METRICS
def test_windows_with_a_missing_sample_have_no_neighbour_and_are_none(normalize):
    series, m = walk(600, 7), 16
    series[[0, 100, 101, 599]], series[300:340] = np.nan, np.inf
    l = len(series) - m + 1  # noqa: E741
    found = check(series, series, m, Tile(0, l, 5, l), normalize)
    touched = np.r_[0, 85:102, 285:340, l - 1]
    assert not np.isin(touched, [*found.rows, *found.columns, *found.row_neighbors, *found.column_neighbors]).any()


@METRICS
def test_a_series_that_is_missing_altogether_finds_nothing(normalize):
    a, b, m = np.full(100, np.nan), walk(100), 10
    found = compute(work(a, b, m, Tile(0, 91, -90, 181), normalize=normalize))
    assert len(found.rows) == len(found.columns) == 0


def test_constant_windows_take_part_only_where_distances_are_not_normalised():
    series, m = walk(400, 8), 12
    series[50:90], series[200:230] = 3.0, -1.0
    l = len(series) - m + 1  # noqa: E741
    found = check(series, series, m, Tile(0, l, 4, l), normalize=True)
    assert not np.isin(np.r_[50:79, 200:219], [*found.rows, *found.row_neighbors]).any()
    found = check(series, series, m, Tile(0, l, 4, l), normalize=False)
    assert found.row_similarity[found.rows == 50] in (0.0, np.inf)


@pytest.mark.parametrize("quiet", [0.0, 1e-7, 1e-5])
@pytest.mark.parametrize("seed", range(8))
def test_constant_windows_find_what_is_constant_or_nearly_so_on_the_other_side(seed, quiet):
    """Not normalised. Whichever side is constant, beside which the other's windows have to be near."""
    rng, m = np.random.default_rng(seed), 3 + 3 * seed
    level, loud = np.full(m + 40, 1.5), rng.standard_normal(140).cumsum()
    loud[50 : 50 + 3 * m] = (1.5 + quiet * rng.standard_normal(3 * m))[: len(loud[50 : 50 + 3 * m])]
    both = rng.standard_normal(120).cumsum()
    both[60 : 60 + 2 * m] = 1.5
    for a, b in ((level, loud), (loud, level), (both, loud)):
        check(a, b, m, Tile(0, len(a) - m + 1, -len(a), 300), normalize=False)


@st.composite
def tiles(draw):
    m = draw(st.integers(3, 30))
    l_a, l_b = draw(st.integers(1, 90)), draw(st.integers(1, 90))
    row = draw(st.integers(0, l_a - 1))
    rows = draw(st.integers(1, l_a - row))
    tile = Tile(row, rows, draw(st.integers(-l_a - 5, l_b + 5)), draw(st.integers(1, 200)))
    seed = draw(st.integers(0, 2**32 - 1))
    a, b = walk(l_a + m - 1, seed), walk(l_b + m - 1, seed + 1)
    for series in (a, b):
        for hole in draw(st.lists(st.integers(0, len(series) - 1), max_size=2)):
            series[hole] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        start = draw(st.integers(0, len(series)))
        series[start : start + draw(st.integers(0, 2 * m))] = draw(st.sampled_from([0.0, 1.5]))
    return a, b, m, tile


@METRICS
@settings(max_examples=150, deadline=None)
@given(case=tiles())
def test_any_tile_of_any_series(case, normalize):
    a, b, m, tile = case
    l_a, l_b = len(a) - m + 1, len(b) - m + 1
    inside = within(tile, l_a, l_b)
    assert tile.cells(l_b) == inside.sum()
    found = compute(work(a, b, m, tile, normalize=normalize))
    distance = np.where(inside, table(a, b, m, normalize), np.inf)
    assert_found(found, distance, m, normalize)


@METRICS
@settings(max_examples=60, deadline=None)
@given(case=tiles(), seed=st.integers(0, 2**32 - 1))
def test_what_is_known_changes_only_what_is_passed_over(case, seed, normalize):
    a, b, m, tile = case
    free = compute(work(a, b, m, tile, normalize=normalize))
    rng = np.random.default_rng(seed)
    known = [rng.uniform(-0.5, 1, 200) if normalize else -rng.uniform(0, 200, 200) for _ in range(2)]
    found = compute(work(a, b, m, tile, normalize=normalize, row_similarity=known[0], column_similarity=known[1]))
    better = free.row_similarity > known[0][free.rows]
    np.testing.assert_array_equal(found.rows, free.rows[better])
    np.testing.assert_array_equal(found.row_similarity, free.row_similarity[better])
    better = free.column_similarity > known[1][free.columns]
    np.testing.assert_array_equal(found.columns, free.columns[better])
    np.testing.assert_array_equal(found.column_similarity, free.column_similarity[better])


@METRICS
def test_a_window_that_cannot_be_improved_is_passed_over(normalize):
    series, m = walk(200, 9), 10
    full = np.full(200, np.inf)
    found = compute(
        work(series, series, m, Tile(0, 191, 4, 190), normalize=normalize, row_similarity=full, column_similarity=full)
    )
    assert len(found.rows) == len(found.columns) == 0
