"""The profile of a join that is under way, from its checkpoint."""

from pathlib import Path

from workers.matrix_profile.profile import Profile
from workers.matrix_profile.tiles.best import Best, Problem
from workers.matrix_profile.tiles.checkpoint import Store
from workers.matrix_profile.tiles.finish import finish
from workers.matrix_profile.tiles.grid import Grid
from workers.matrix_profile.tiles.join import pairs_of
from workers.reporting import Silent


def so_far(problem: Problem, checkpoint: Path) -> tuple[Profile, float]:
    """The profile of `a` as far as it is known, and the share of the pairs of windows that went into it, 0 to 1.

    Each distance is that of the pair it names, so none is below the true one. Of a checkpoint that is not there, is cut off, or is
    of another join: what is known without any tile, with a share of 0.
    """
    best, grid = Best.none(problem), Grid(problem.l_a, problem.l_b, problem.m, self_join=problem.self_join)
    done = Store(checkpoint).open(best, grid, Silent())
    cells = sum(tile.cells(problem.l_b) for tile, there in zip(grid.tiles, done, strict=True) if there)
    profile, _ = finish(best, pairs_of(problem, threads=1))
    return profile, cells / max(1, grid.cells)
