"""What the tests of tiles share: hands that compute every pair by itself, tiles small enough to have many, an ear."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.conftest import Heard  # first of all: it decides the environment of compiled code
from workers.matrix_profile.profile import exclusion_zone


@dataclass
class Listener(Heard):
    """A reporter that remembers what it was told, the log too."""

    logs: list[str] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def progress(self, done, total, unit, eta_seconds=None, fraction=None):
        super().progress(done, total, unit, eta_seconds)
        self.shares.append(fraction)

    def log(self, message):
        self.logs.append(message)


@dataclass
class SlowHands:
    """Computes tiles from the definition, in extended precision, in any order: order(tiles) → tiles."""

    order: object = list
    computed: list = field(default_factory=list)

    def each(self, tiles, work):
        for tile in self.order(list(tiles)):
            self.computed.append(tile)
            yield tile, found_slowly(work(tile))


def found_slowly(work):
    """What is in a tile, whatever is known already."""
    from workers.matrix_profile.tiles.tile import Found

    table = similarity_table(work.row_values, work.column_values, work.m, work.normalize)
    i = np.arange(work.tile.row, work.tile.row + table.shape[0])
    j = np.arange(work.first_column, work.first_column + table.shape[1])
    diagonals = j[None, :] - i[:, None]
    table[(diagonals < work.tile.diagonal) | (diagonals >= work.tile.diagonal + work.tile.diagonals)] = -np.inf
    rows, columns = table.max(axis=1, initial=-np.inf), table.max(axis=0, initial=-np.inf)
    r, c = np.flatnonzero(rows > work.row_similarity), np.flatnonzero(columns > work.column_similarity)
    return Found(i[r], rows[r], j[table[r].argmax(axis=1)], j[c], columns[c], i[table[:, c].argmax(axis=0)])


def similarity_table(a, b, m, normalize):
    """Similarities (l_a, l_b) as tiles have them; -inf for windows that take no part in tiles."""
    apart = oracle.matrix_profile(a, m, against=b, normalize=normalize).table
    table = np.array(1 - apart**2 / (2 * m) if normalize else -(apart**2), dtype=np.float64)
    if normalize:
        for axis, values in ((0, a), (1, b)):
            windows = np.lib.stride_tricks.sliding_window_view(values, m)
            table[(slice(None),) * axis + (windows.max(axis=1) == windows.min(axis=1),)] = -np.inf
    return table


def assert_true(profile, series, m, *, against=None, normalize=True, tolerance=1e-9):
    """Distances as defined; every neighbour named is as far away as it is said to be (ties may name another)."""
    truth = oracle.matrix_profile(series, m, against=against, normalize=normalize)
    scale = np.max(truth.distances[np.isfinite(truth.distances)], initial=0.0) or 1.0
    close = {"rtol": tolerance, "atol": tolerance * scale}
    np.testing.assert_allclose(profile.distances, truth.distances, **close)
    np.testing.assert_allclose(truth.at(profile.indices), truth.distances, **close)
    np.testing.assert_allclose(truth.at(profile.left), truth.left, **close)
    np.testing.assert_allclose(truth.at(profile.right), truth.right, **close)


def counted(l_a, l_b, m, *, self_join):
    """Which pairs of windows count: bool (l_a, l_b), in a self-join once each."""
    diagonals = np.arange(l_b)[None, :] - np.arange(l_a)[:, None]
    return diagonals > exclusion_zone(m) if self_join else np.ones((l_a, l_b), dtype=bool)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of at most 1,500 pairs, 16 diagonals wide."""
    from workers.matrix_profile.tiles import grid

    monkeypatch.setattr(grid, "LEAST_CELLS", 1500)
    monkeypatch.setattr(grid, "LEAST_TILES", 1 << 40)
    monkeypatch.setattr(grid, "WIDTH", 16)


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def every_tile(all_kept, small_tiles):
    """A checkpoint after each of many tiles."""


@pytest.fixture
def all_kept(monkeypatch):
    """A checkpoint after each tile."""
    from workers.matrix_profile.tiles import checkpoint

    for name in ("LEAST_SECONDS", "TIMES_ITS_COST", "LEAST_SHARE"):
        monkeypatch.setattr(checkpoint, name, 0)
