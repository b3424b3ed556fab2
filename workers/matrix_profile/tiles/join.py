"""A join, from series to profile: its tiles are computed by whatever hands there are, and what they find is put together."""

import time
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from workers.matrix_profile.profile import Bools, Ints, Profile, exclusion_zone
from workers.matrix_profile.tiles.best import Best, Problem
from workers.matrix_profile.tiles.checkpoint import Store
from workers.matrix_profile.tiles.finish import finish
from workers.matrix_profile.tiles.grid import Grid
from workers.matrix_profile.tiles.hands import Hands
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


@dataclass(frozen=True)
class Joined:
    """profile: of `a`, k=1; with left and right in a self-join.  other: in an AB-join, that of `b` in `a`.

    pairs: how its distances were measured.  tiles: how many there are; resumed: how many of them came from a
    checkpoint.  cells: pairs of windows altogether; careful_cells: how many of them took twice the precision.
    """

    profile: Profile
    other: Profile | None
    pairs: Pairs
    tiles: int
    resumed: int
    cells: int
    careful_cells: int


def join(
    problem: Problem,
    hands: Hands,
    report: Reporter,
    store: Store | None = None,
    *,
    known: tuple[Ints, Ints] | None = None,
    threads: int = 1,
) -> Joined:
    """The exact profile, with distances in the units of the problem's series.

    store: goes on from what an earlier attempt left there, and leaves checkpoints.  known: pairs of windows (i of `a`, j
    of `b`; int64 (r,) each) that are probably near to each other: the nearer, the less there is to do.  threads: for what
    comes after the tiles.
    """
    best, grid = Best.none(problem), Grid(problem.l_a, problem.l_b, problem.m, self_join=problem.self_join)
    done = np.zeros(len(grid.tiles), dtype=np.bool_) if store is None else store.open(best, grid, report)
    resumed = int(np.count_nonzero(done))
    pairs = pairs_of(problem, threads)
    if known is not None and not done.all():
        _start_from(best, pairs, *known)
    _compute(best, grid, done, hands, report, store)
    profile, other = finish(best, pairs)
    return Joined(profile, other, pairs, len(done), resumed, grid.cells, best.careful_cells)


def _compute(best: Best, grid: Grid, done: Bools, hands: Hands, report: Reporter, store: Store | None) -> None:
    """Have every tile computed that is not done."""
    l_b, started = best.problem.l_b, time.monotonic()
    numbers = {tile: number for number, tile in enumerate(grid.tiles)}
    before = cells = sum(tile.cells(l_b) for tile in grid.tiles if done[numbers[tile]])
    if store is not None:
        store.keep(best, done, cells / max(1, grid.cells), report)
    with closing(hands.each([tile for tile in grid.tiles if not done[numbers[tile]]], best.work)) as arriving:
        for tile, found in arriving:
            best.merge(found)
            done[numbers[tile]] = True
            cells += tile.cells(l_b)
            share, ours = cells / grid.cells, cells - before
            eta = (time.monotonic() - started) * (grid.cells - cells) / ours
            report.progress(int(np.count_nonzero(done)), len(done), "tiles", eta, share)
            if store is not None:
                store.keep(best, done, share, report)
    if not done.all():
        raise RuntimeError(f"{np.count_nonzero(~done)} of {len(done)} tiles were not computed")


def pairs_of(problem: Problem, threads: int) -> Pairs:
    a = Windows(problem.a, problem.m)
    b = a if problem.b is None else Windows(problem.b, problem.m)
    return Pairs.of(a, b, normalize=problem.normalize, threads=threads)


def _start_from(best: Best, pairs: Pairs, i: Ints, j: Ints) -> None:
    """Measure pairs that are probably near, and take those that count for the best known so far."""
    problem = best.problem
    if problem.self_join:
        i, j = np.minimum(i, j), np.maximum(i, j)
    there = (i >= 0) & (j >= 0) & (i < problem.l_a) & (j < problem.l_b)
    there &= (j - i > exclusion_zone(problem.m)) | (not problem.self_join)
    i, j = i[there], j[there]
    similarity = pairs.similarities(i, j)
    whole = np.isfinite(similarity)
    best.seed(i[whole], j[whole], similarity[whole])
