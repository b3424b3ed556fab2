"""The tiles of a join, in the order they are visited.

Diagonals are cut into stripes, and each stripe goes round the whole matrix: with a block of diagonals comes the one at
the other end that continues it, so that every stripe meets every window equally often. Stripes are visited in an order that
leaves what was visited spread over the matrix at any time.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Final

from workers.matrix_profile.profile import exclusion_zone
from workers.matrix_profile.tiles.tile import Tile

CELLS_PER_SECOND: Final = 2.5e9
"""What one thread does, about."""
TILE_SECONDS: Final = 0.2
LEAST_TILES: Final = 16
"""So many where a join is large enough to be cut at all: for threads that end together, and for progress."""
LEAST_CELLS: Final = 1 << 22
"""A smaller tile is mostly preparation."""
LAST_PARTS: Final = 2
LAST_WINDOWS: Final = 32
"""The last tiles are cut into so many, but not below so many windows' lengths of rows, for each starts with whole windows."""
WIDTH: Final = 512
"""Diagonals are computed so many at a time: a stripe is a multiple of it."""


class Grid:
    """The rows [0, l_a) and diagonals of a join, cut. Each pair of windows that counts is in exactly one tile.

    A self-join has the diagonals above its exclusion zone alone. cells: pairs altogether, an int.
    """

    def __init__(
        self, l_a: int, l_b: int, m: int, *, self_join: bool, cells_per_second: float = CELLS_PER_SECOND
    ) -> None:
        self.l_a, self.l_b, self.self_join = l_a, l_b, self_join
        self.first, self.stop = (exclusion_zone(m) + 1, l_b) if self_join else (1 - l_a, l_b)
        far = max(0, self.stop - self.first)
        self.cells = far * (far + 1) // 2 if self_join else l_a * l_b
        self.most_cells = int(max(LEAST_CELLS, min(TILE_SECONDS * cells_per_second, self.cells / LEAST_TILES)))
        short = min(l_a, l_b)
        side = max(1, min(isqrt(self.most_cells), short))
        width = self.most_cells // side
        self.diagonals = max(WIDTH, width // WIDTH * WIDTH)
        self.rows = max(1, self.most_cells // self.diagonals) if side < short else self.diagonals + short
        least = max(self.rows // LAST_PARTS, LAST_WINDOWS * m, LEAST_CELLS // self.diagonals)
        self.last_rows = min(self.rows, least)

    @cached_property
    def tiles(self) -> list[Tile]:
        """All tiles, in order. Those of the last stripe have fewer rows, so that threads end together."""
        blocks = list(self._blocks())
        ordinary = [tile for block in blocks[:-2] for tile in self._cut(*block, self.rows)]
        return ordinary + [tile for block in blocks[-2:] for tile in self._cut(*block, self.last_rows)]

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Blocks of diagonals [first, stop), each stripe's two after each other."""
        around = self.l_a // 2 + 1 if self.self_join else max(self.l_a, self.l_b)
        start = 1 if self.self_join else 0
        for number in scattered(-(-(around - start) // self.diagonals)):
            first = start + number * self.diagonals
            stop = min(around, first + self.diagonals)
            yield first, stop
            if self.self_join:  # window i meets i+k, or i+k-l: the same pair is i+(l-k) seen from the other side
                yield max(stop, self.l_a - stop + 1), self.l_a - first + 1
            else:
                yield first - around, stop - around

    def _cut(self, first: int, stop: int, rows: int) -> Iterator[Tile]:
        """A block of diagonals as tiles of about equally many rows."""
        first, stop = max(first, self.first), min(stop, self.stop)
        top, bottom = max(0, 1 - stop), min(self.l_a, self.l_b - first)
        if first >= stop or top >= bottom:
            return
        count = -(-(bottom - top) // rows)
        cuts = [top + (bottom - top) * number // count for number in range(count + 1)]
        for row, end in pairwise(cuts):
            yield Tile(row, end - row, first, stop - first)


def scattered(count: int) -> list[int]:
    """0 … count-1, each as far as can be from those before it: by their reversed bits, 0, 4, 2, 6, 1, 5, 3, 7.

    Between powers of two the numbers are spread over [0, count) in proportion.
    """
    bits = max(1, (count - 1).bit_length())
    turned = (int(format(number, f"0{bits}b")[::-1], 2) for number in range(1 << bits))
    return list(dict.fromkeys(number * count >> bits for number in turned)) if count > 0 else []
