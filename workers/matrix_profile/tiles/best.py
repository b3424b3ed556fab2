"""The best neighbour each window has so far, as tiles come in."""

from dataclasses import dataclass

import numpy as np

from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.tiles.tile import Found, Tile, Work


@dataclass(frozen=True)
class Nearest:
    """The windows of one role, rows or columns. similarity: float64 (l,), -inf where none is known.
    neighbors: int64 (l,), -1 there."""

    similarity: Floats
    neighbors: Ints

    @classmethod
    def none(cls, windows: int) -> "Nearest":
        return cls(np.full(windows, -np.inf), np.full(windows, -1, dtype=np.int64))

    @classmethod
    def unasked(cls, windows: int) -> "Nearest":
        """Nothing is near enough: what nobody asks for costs no look."""
        return cls(np.full(windows, np.inf), np.full(windows, -1, dtype=np.int64))

    def offer(self, windows: Ints, similarity: Floats, neighbors: Ints) -> None:
        """Take what is better, each window named once; of equals the neighbour with the smaller number, so that the order
        of offers does not matter."""
        now, known = self.similarity[windows], self.neighbors[windows]
        better = (similarity > now) | ((similarity == now) & (neighbors < known))
        self.similarity[windows[better]] = similarity[better]
        self.neighbors[windows[better]] = neighbors[better]

    def offer_all(self, windows: Ints, similarity: Floats, neighbors: Ints) -> None:
        """The same where a window may be named several times."""
        order = np.lexsort((neighbors, -similarity, windows))
        first = order[np.diff(windows[order], prepend=-1) != 0]
        self.offer(windows[first], similarity[first], neighbors[first])


@dataclass(frozen=True)
class Problem:
    """A join to be computed: of `a` (float64 (n,), non-finite where missing) with itself, or with `b`.

    m: samples of a window. normalize: z-normalised Euclidean distances, else Euclidean ones. both: whether windows of `b`
    look for neighbours in `a` as well.
    """

    a: Floats
    b: Floats | None
    m: int
    normalize: bool
    both: bool = True

    @property
    def self_join(self) -> bool:
        return self.b is None

    @property
    def other(self) -> Floats:
        """The series the columns are windows of."""
        return self.a if self.b is None else self.b

    @property
    def l_a(self) -> int:
        return len(self.a) - self.m + 1

    @property
    def l_b(self) -> int:
        return len(self.other) - self.m + 1


@dataclass
class Best:
    """rows: windows of `a` with the best of `b`; in a self-join, with the best to their right. columns: windows of `b`
    with the best of `a`; in a self-join, with the best to their left."""

    problem: Problem
    rows: Nearest
    columns: Nearest
    careful_cells: int = 0

    @classmethod
    def none(cls, problem: Problem) -> "Best":
        columns = Nearest.none if problem.both or problem.self_join else Nearest.unasked
        return cls(problem, Nearest.none(problem.l_a), columns(problem.l_b))

    def work(self, tile: Tile) -> Work:
        """A tile with the samples it covers and copies of the best known so far."""
        problem, more = self.problem, self.problem.m - 1
        end = tile.row + tile.rows
        first, stop = tile.columns(problem.l_b)
        return Work(
            tile,
            problem.m,
            problem.normalize,
            first,
            problem.a[tile.row : end + more],
            problem.other[first : stop + more],
            self.rows.similarity[tile.row : end].copy(),
            self.columns.similarity[first:stop].copy(),
        )

    def seed(self, i: Ints, j: Ints, similarity: Floats) -> None:
        """Start from pairs (r,) of window i of `a` and window j of `b`, in a self-join i < j, and their similarity."""
        self.rows.offer_all(i, similarity, j)
        self.columns.offer_all(j, similarity, i)

    def merge(self, found: Found) -> None:
        self.rows.offer(found.rows, found.row_similarity, found.row_neighbors)
        self.columns.offer(found.columns, found.column_similarity, found.column_neighbors)
        self.careful_cells += found.careful_cells
