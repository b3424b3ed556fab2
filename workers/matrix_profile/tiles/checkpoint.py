"""What a join has found so far, kept: to go on from, and to look at."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from workers.matrix_profile.profile import Bools
from workers.matrix_profile.tiles import saved
from workers.matrix_profile.tiles.best import Best
from workers.matrix_profile.tiles.grid import Grid
from workers.reporting import Reporter

LEAST_SECONDS: Final = 0.05
TIMES_ITS_COST: Final = 5
LEAST_SHARE: Final = 0.015
"""Between two checkpoints pass at least so many seconds, so many times what writing one took, and this share of all
cells."""
MOST_SHARE: Final = 0.03
"""Of all cells; with so many since the last one, a checkpoint is written whatever it costs, and be the disk slow."""


class Store:
    """Where a join keeps its checkpoint, and where the attempts before it kept theirs."""

    def __init__(self, path: Path, earlier: Sequence[Path] = ()) -> None:
        self.path, self.earlier = path, earlier
        self._fingerprint, self._share, self._due = "", -1.0, 0.0

    def open(self, best: Best, grid: Grid, report: Reporter) -> Bools:
        """Put the newest whole checkpoint of this very join, if there is one, into `best`. Returns which tiles it holds."""
        self._fingerprint = saved.fingerprint(best.problem, grid)
        there = [path for path in (self.path, *self.earlier) if path.exists()]
        for path in sorted(there, key=lambda path: path.stat().st_mtime, reverse=True):
            try:
                about, arrays = saved.read(path)
                if about["fingerprint"] != self._fingerprint:
                    raise ValueError("it is of another join")
                done = saved.into(best, arrays, len(grid.tiles))
            except saved.UNREADABLE as fault:
                report.log(f"passing over the checkpoint {path.name}: {fault}")
                continue
            best.careful_cells = int(about["careful_cells"])
            report.log(f"going on from a checkpoint with {np.count_nonzero(done)} of {len(done)} tiles")
            return done
        return np.zeros(len(grid.tiles), dtype=np.bool_)

    def keep(self, best: Best, done: Bools, share: float, report: Reporter) -> None:
        """Write a checkpoint if it is time; the first one at once. share: of the cells, 0 to 1. A disk that is full costs
        the checkpoint, not the join."""
        started = time.monotonic()
        if self._share >= 0:
            since = share - self._share
            if since < LEAST_SHARE or (since < MOST_SHARE and started < self._due):
                return
        problem = best.problem
        about = {
            "fingerprint": self._fingerprint,
            "m": problem.m,
            "normalize": problem.normalize,
            "self_join": problem.self_join,
            "coverage": share,
            "careful_cells": best.careful_cells,
        }
        try:
            saved.write(self.path, about, best, done)
        except OSError as fault:
            report.log(f"the checkpoint could not be written: {fault.strerror}")
        ended = time.monotonic()
        self._share, self._due = share, ended + max(LEAST_SECONDS, TIMES_ITS_COST * (ended - started))
