"""What is known of the radii of all windows of several series: how far, at worst, a window's nearest neighbours in the others are.

Two series are compared by tiles; what no window needs to know is left out: those whose radius cannot be the least look for nothing, the
others only for neighbours that are nearer than the least radius known. (Ostinato, Kamgar et al., ICDM 2019, has the same
bounds, and looks at one window after the other.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from workers.matrix_profile.choosing import runs
from workers.matrix_profile.profile import Floats
from workers.matrix_profile.tiles.best import Nearest
from workers.matrix_profile.tiles.finish import Reach, settled
from workers.matrix_profile.tiles.grid import Grid
from workers.matrix_profile.tiles.pairs import Pairs, Ready
from workers.matrix_profile.tiles.tile import Found, Tile, Work

MARGIN: Final = 1e-9
"""A correlation from the tiles may be off by a tenth of this;"""
MARGIN_SHARE: Final = 1e-3
"""a squared distance by a tenth of this share of itself."""

GAP: Final = 128
"""Windows to be compared that are no further apart than this are compared in one go, with those between them."""

WHOLE_CELLS: Final = 1 << 26
"""A stretch of windows beside a whole series is one tile if it has no more pairs."""


@dataclass(frozen=True)
class Part(Tile):
    """A tile of the comparison of series `a`, its rows, with series `b`; both_ways: the columns look for neighbours, too."""

    a: int
    b: int
    both_ways: bool


class Radii:
    """series: float64 (n,) each, non-finite where missing.  ready: their windows.

    bounds: float64 (l,) of each series, what no radius is below; inf for a window that is not whole, or whose radius is not
    the least.  compared: the pairs of series (a, b), a < b, that the bounds know of.  radius, number, index: the least
    radius so far, and the series and the window that have it. Distances are in the units of these series.
    """

    def __init__(self, series: Sequence[Floats], ready: Sequence[Ready], *, normalize: bool) -> None:
        self.series, self.ready, self.normalize, self.m = series, ready, normalize, ready[0].m
        self.bounds = [np.where(each.whole, 0.0, np.inf) for each in ready]
        self.compared: set[tuple[int, int]] = set()
        self.radius, self.number, self.index = np.inf, -1, -1
        self._wanted: dict[tuple[int, int], Nearest] = {}

    def pairs(self, a: int, b: int) -> Pairs:
        return Pairs(self.ready[a], self.ready[b], normalize=self.normalize)

    def claim(self, radius: float, number: int, index: int) -> None:
        """A window has this radius."""
        if radius < self.radius:
            self.radius, self.number, self.index = float(radius), number, index

    def look(self, number: int, index: int) -> None:
        """Find a window's radius by itself, or that it is not the least."""
        radius = self.bounds[number][index]
        for other in range(len(self.ready)):
            if radius >= self.radius:
                break
            if other != number and (min(number, other), max(number, other)) not in self.compared:
                radius = max(radius, self.pairs(number, other).nearer(index, 0, len(self.ready[other]), self.radius)[0])
        self.bounds[number][index] = radius
        self.claim(radius, number, index)

    # ---- two series, by tiles ----------------------------------------------------------------------------------------

    def parts(self, a: int, b: int) -> list[Part]:
        """What must be computed to compare two series: the windows that may have a lesser radius, or all with all where
        that is no more."""
        rows, columns = (list(runs(np.flatnonzero(self.bounds[each] < self.radius), GAP)) for each in (a, b))
        l_a, l_b = len(self.ready[a]), len(self.ready[b])
        self._wanted[a, b], self._wanted[b, a] = self._below(a), self._below(b)
        some = sum(stop - first for first, stop in rows) * l_b + sum(stop - first for first, stop in columns) * l_a
        if some < l_a * l_b:
            return [*_across(rows, a, b, l_b), *_across(columns, b, a, l_a)]
        tiles = Grid(l_a, l_b, self.m, self_join=False).tiles
        return [Part(t.row, t.rows, t.diagonal, t.diagonals, a, b, True) for t in tiles]

    def work(self, part: Part) -> Work:
        """A part with the samples it covers, and what its windows' neighbours must be nearer than."""
        end, (first, stop), more = part.row + part.rows, part.columns(len(self.ready[part.b])), self.m - 1
        others = self._wanted[part.b, part.a].similarity[first:stop].copy()
        if not part.both_ways:
            others[:] = np.inf
        return Work(
            part, self.m, self.normalize, first, self.series[part.a][part.row : end + more],
            self.series[part.b][first : stop + more], self._wanted[part.a, part.b].similarity[part.row : end].copy(), others,
        )  # fmt: skip

    def merge(self, part: Part, found: Found) -> None:
        self._wanted[part.a, part.b].offer(found.rows, found.row_similarity, found.row_neighbors)
        if part.both_ways:
            self._wanted[part.b, part.a].offer(found.columns, found.column_similarity, found.column_neighbors)

    def found(self, a: int, b: int) -> Floats:
        """All parts are merged: distances (l_a,) of the windows of `a` to their nearest in `b`; inf where they cannot have the
        least radius."""
        pairs, l_a, l_b = self.pairs(a, b), len(self.ready[a]), len(self.ready[b])
        neighbors = settled(self._wanted.pop((a, b)), pairs, Reach.everywhere(l_a, l_b)).neighbors
        wanted = self.bounds[a] < self.radius
        neighbors[~wanted] = -1
        return pairs.distances(np.arange(l_a), neighbors)

    def learn(self, a: int, b: int, distances: Floats, others: Floats) -> None:
        """What was found of `a` in `b`, and of `b` in `a`."""
        np.maximum(self.bounds[a], distances, out=self.bounds[a])
        np.maximum(self.bounds[b], others, out=self.bounds[b])
        self.compared.add((min(a, b), max(a, b)))

    def _below(self, number: int) -> Nearest:
        """What a window's neighbour must be better than to matter; nothing is for a window that does not."""
        margin = MARGIN if self.normalize else MARGIN_SHARE * self.radius**2
        level = 1.0 - self.radius**2 / (2 * self.m) if self.normalize else -(self.radius**2)
        similarity = np.where(self.bounds[number] < self.radius, level - margin, np.inf)
        return Nearest(similarity, np.full(len(similarity), -1, dtype=np.int64))


def _across(stretches: list[tuple[int, int]], a: int, b: int, l_b: int) -> Iterator[Part]:
    """Stretches of rows with all columns."""
    for first, stop in stretches:
        rows = stop - first
        whole = [Tile(0, rows, 1 - rows, rows + l_b - 1)]
        tiles = whole if rows * l_b <= WHOLE_CELLS else Grid(rows, l_b, 1, self_join=False).tiles
        for tile in tiles:
            yield Part(first + tile.row, tile.rows, tile.diagonal - first, tile.diagonals, a, b, False)
