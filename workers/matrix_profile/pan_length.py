"""One window length of a pan profile by our own kernel: each window's nearest neighbour, be it before it or after it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from workers.matrix_profile.distance import Distance
from workers.matrix_profile.pan_row import Row, check
from workers.matrix_profile.profile import Floats, Ints, Profile, exclusion_zone
from workers.matrix_profile.records import Record
from workers.matrix_profile.tiles.best import Nearest
from workers.matrix_profile.tiles.finish import Reach, settled
from workers.matrix_profile.tiles.grid import Grid
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.tiles.tile import Found, Tile, Work
from workers.matrix_profile.treatment import Treated
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter

WHOLE_CELLS: Final = 1 << 27
"""A join of no more is one tile: about 50 ms."""
SEEDED: Final = -1
"""The number of the tile that holds what is known at the start."""


@dataclass(frozen=True)
class Part(Tile):
    """A tile of the self-join at window length `m`; `number` of it, from 0."""

    m: int
    number: int


class Length:
    """The self-join of a series at window length `m`, under way."""

    def __init__(self, series: Floats, treated: Treated, distance: Distance, m: int) -> None:
        self.series, self.treated, self.distance, self.m = series, treated, distance, m
        self.windows, self.zone = len(series) - m + 1, exclusion_zone(m)
        self.started = False
        grid = Grid(self.windows, self.windows, m, self_join=True)
        far = self.windows - self.zone - 1
        tiles = grid.tiles if grid.cells > WHOLE_CELLS else [Tile(0, far, self.zone + 1, far)] if far > 0 else []
        self.parts = [Part(t.row, t.rows, t.diagonal, t.diagonals, m, n) for n, t in enumerate(tiles)]
        self.left = set(range(len(self.parts)))
        self._known = Nearest.none(0)

    @property
    def in_parts(self) -> bool:
        """Whether a tile is worth keeping by itself."""
        return len(self.parts) > 1

    @cached_property
    def pairs(self) -> Pairs:
        windows = Windows(self.treated.series[0], self.m)
        return Pairs.of(windows, windows, normalize=self.distance.normalize)

    def start(self, neighbors: Ints | None) -> Record | None:
        """Start from what were the windows' neighbours at another length. Returns what is known then, as a record."""
        rows, self.started, self._known = np.arange(self.windows), True, Nearest.none(self.windows)
        if neighbors is not None:
            near = np.full(self.windows, -1, dtype=np.int64)
            near[: len(neighbors)] = neighbors[: self.windows]
            rows = np.flatnonzero((near >= 0) & (near < self.windows) & (np.abs(near - rows) > self.zone))
            similarity = self.pairs.similarities(rows, near[rows])
            there = np.isfinite(similarity)
            self._known.offer(rows[there], similarity[there], near[rows[there]])
        rows = np.flatnonzero(self._known.neighbors >= 0)
        return self._record(SEEDED, rows, self._known.similarity[rows], self._known.neighbors[rows])

    def work(self, part: Part) -> Work:
        """Rows look for neighbours after them, columns for those before; either must be better than all that is known."""
        end, (first, stop), more = part.row + part.rows, part.columns(self.windows), self.m - 1
        values, known = self.treated.series[0], self._known.similarity
        return Work(
            part, self.m, self.distance.normalize, first, values[part.row : end + more], values[first : stop + more],
            known[part.row : end].copy(), known[first:stop].copy(),
        )  # fmt: skip

    def merge(self, part: Part, found: Found) -> Record | None:
        """What a tile found, as a record."""
        self._known.offer(found.rows, found.row_similarity, found.row_neighbors)
        self._known.offer(found.columns, found.column_similarity, found.column_neighbors)
        self.left.discard(part.number)
        windows = np.concatenate([found.rows, found.columns])
        similarity = np.concatenate([found.row_similarity, found.column_similarity])
        return self._record(
            part.number, windows, similarity, np.concatenate([found.row_neighbors, found.column_neighbors])
        )

    def _record(self, number: int, windows: Ints, similarity: Floats, neighbors: Ints) -> Record | None:
        arrays = {"windows": windows, "similarity": similarity, "neighbors": neighbors}
        return Record({"m": self.m, "tile": number}, arrays) if self.in_parts else None

    def go_on(self, record: Record) -> None:
        """Take over what another attempt started from or found in a tile: its records in their order, all of them."""
        if not self.started:
            self.started, self._known = True, Nearest.none(self.windows)
        self._known.offer_all(*(record.arrays[name] for name in ("windows", "similarity", "neighbors")))
        self.left.discard(int(record.about["tile"]))

    def finish(self, report: Reporter) -> tuple[Row, Ints]:
        """All tiles are merged. Also the neighbours, int64 (l,). May run in a thread of its own."""
        neighbors = self._settled()
        distances = self.pairs.distances(np.arange(self.windows), neighbors)
        neighbors[~np.isfinite(distances)] = -1
        nowhere = np.full(self.windows, -1, dtype=np.int64)
        profile = Profile(self.treated.distances(distances)[:, None], neighbors[:, None], nowhere, nowhere.copy())
        checked = check(profile, self.pairs, self.distance.measure(Windows(self.series, self.m)), self.treated, report)
        distances, neighbors = profile.distances[:, 0], profile.indices[:, 0]
        best = int(distances.argmin())
        self.__dict__.pop("pairs", None)
        self._known = Nearest.none(0)
        return Row(distances, (best, int(neighbors[best])), checked), neighbors

    def _settled(self) -> Ints:
        """The neighbours, constant windows among them."""
        before, after = (Reach.before(self.windows, self.m), Reach.after(self.windows, self.m))
        if not self.pairs.a.constant.any():
            return self._known.neighbors
        left, right = (settled(self._known, self.pairs, reach) for reach in (before, after))
        return np.where(right.similarity > left.similarity, right.neighbors, left.neighbors)
