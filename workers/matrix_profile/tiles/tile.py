"""A tile of the distance matrix: what is asked of whoever computes it, and what is found in it.

Rows are windows of `a`, columns windows of `b`, and a diagonal is column minus row. A tile is a rectangle of rows and
diagonals, so that each of its diagonals is equally long, and none ends within it but at the matrix's own edge.
"""

from dataclasses import dataclass

from workers.matrix_profile.profile import Floats, Ints


@dataclass(frozen=True)
class Tile:
    """Rows [row, row + rows) on diagonals [diagonal, diagonal + diagonals)."""

    row: int
    rows: int
    diagonal: int
    diagonals: int

    def columns(self, l_b: int) -> tuple[int, int]:
        """The first column it touches, and the one after the last, of the `l_b` there are."""
        first = self.row + self.diagonal
        return max(0, first), min(l_b, first + self.rows + self.diagonals - 1)

    def cells(self, l_b: int) -> int:
        """How many pairs of a row and one of the `l_b` columns it holds."""
        return _pairs(self, l_b) - _pairs(self, 0)


def _pairs(tile: Tile, stop: int) -> int:
    """The tile's pairs with a column below `stop`, counted from the left end of its first row."""
    # Row r holds min(max(reach - r, 0), diagonals) of them: all of them as long as reach - r >= diagonals, then fewer.
    reach = stop - tile.row - tile.diagonal
    full = min(max(reach - tile.diagonals + 1, 0), tile.rows)
    some = min(max(reach, 0), tile.rows)
    falling = (reach - full) + (reach - some + 1)
    return full * tile.diagonals + (some - full) * falling // 2


@dataclass(frozen=True)
class Work:
    """All that computing a tile takes: O(tile) bytes, whatever the series' lengths.

    row_values: float64 (rows+m-1,), samples of `a` from the tile's first row on, non-finite where missing.
    column_values: float64 (columns+m-1,), samples of `b` from column `first_column` on.
    row_similarity, column_similarity: float64, the best that is known so far: Pearson correlation where normalised, minus
    the squared distance else; -inf where nothing is, +inf where nothing can be better.
    """

    tile: Tile
    m: int
    normalize: bool
    first_column: int
    row_values: Floats
    column_values: Floats
    row_similarity: Floats
    column_similarity: Floats


@dataclass(frozen=True)
class Found:
    """The rows and columns that found a better neighbour in a tile, by their numbers in the whole matrix.

    careful_cells: how many cells were computed in twice the precision.
    """

    rows: Ints
    row_similarity: Floats
    row_neighbors: Ints
    columns: Ints
    column_similarity: Floats
    column_neighbors: Ints
    careful_cells: int = 0
