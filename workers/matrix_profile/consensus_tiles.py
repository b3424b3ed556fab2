"""The search for the consensus motif of several series by our own kernel: series are compared in pairs, round by round."""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from workers.matrix_profile.choosing import lowest, rounds
from workers.matrix_profile.consensus_motif import Motif, Witness
from workers.matrix_profile.frame import Job
from workers.matrix_profile.profile import Ints
from workers.matrix_profile.radii import Part, Radii
from workers.matrix_profile.records import Record, Records
from workers.matrix_profile.series import Series
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.pairs import Ready
from workers.matrix_profile.tiles.tile import Found, Tile, Work
from workers.matrix_profile.windows import Windows

KEPT: Final = "consensus.checkpoint"
LOOKED_AT: Final = 8
"""Windows of each series looked at before any are compared, spread over it, and between two rounds, those with the least bounds."""


class Search:
    """The search of one job; `windows` of the series as they came. tiles: computed, or taken over from an earlier attempt;
    resumed: those taken over."""

    def __init__(self, job: Job, series: list[Series], windows: list[Windows]) -> None:
        self.job, self.m, normalize = job, windows[0].m, job.distance.normalize
        self.treated = scaled([each.values for each in series], normalize=normalize)
        threads, ours = job.ground.threads, [Windows(each, self.m) for each in self.treated.series]
        ready = [Ready(each, normalize=normalize, threads=threads) for each in ours]
        self.radii = Radii(self.treated.series, ready, normalize=normalize)
        self.witness = Witness(self.radii, windows, self.treated, job.distance)
        self.tiles, self.resumed, self.careful_cells, self._lengths = 0, 0, 0, [len(each) for each in windows]
        self._cells, self._started = self._size(combinations(range(len(series)), 2)), 0.0

    def find(self) -> Motif:
        """The motif. Goes on from what an earlier attempt kept."""
        task, settings = self.job.task, ("consensus", self.m, self.job.distance.normalize)
        earlier = [Path(each) / KEPT for each in task.get("earlier") or ()]
        path = Path(task["folder"]) / KEPT
        with Records(path, earlier, self.job.report, self.treated.series, *settings) as self._kept:
            self._reduce(self._go_on(self._kept.found))
        for number, bounds in enumerate(self.radii.bounds):
            self.radii.claim(bounds.min(), number, int(bounds.argmin()))
        return self.witness.central()

    def _reduce(self, found: list[Record]) -> None:
        """Compare all pairs of series. found: what an earlier attempt found in the round that was under way."""
        self._started = time.monotonic()
        if self.radii.number < 0:
            self._look([np.linspace(0, length - 1, LOOKED_AT).astype(np.int64) for length in self._lengths])
            self._kept.add(self._state())
        for pairs in rounds(len(self._lengths)):
            if left := [pair for pair in pairs if pair not in self.radii.compared]:
                self._compare(left, found)
                found = []
                self._look([lowest(bounds, LOOKED_AT, self.m) for bounds in self.radii.bounds])
                self._kept.add(self._state())

    def _look(self, windows: Sequence[Ints]) -> None:
        for number, several in enumerate(windows):
            for index in several.tolist():
                self.radii.look(number, index)

    # ---- a round of comparisons --------------------------------------------------------------------------------------

    def _compare(self, pairs: list[tuple[int, int]], found: Sequence[Record]) -> None:
        """Compare these pairs of series. found: what an earlier attempt found in tiles of this round."""
        parts = dict(enumerate(part for pair in pairs for part in self.radii.parts(*pair)))
        count, before, size = len(parts), self._size(self.radii.compared), self._size(pairs)
        for record in found:
            self._merge(parts.pop(int(record.about["part"])), _found(record))
        numbers = {part: number for number, part in parts.items()}
        with closing(self.job.ground.hands().each(list(parts.values()), self._work)) as arriving:
            for part, new in arriving:
                assert isinstance(part, Part)
                self._kept.add(_record(numbers[part], new))
                self._merge(part, new)
                del parts[numbers[part]]
                self._tell((before + size * (1 - len(parts) / count)) / self._cells)
        for a, b in pairs:
            distances, others = self.radii.found(a, b), self.radii.found(b, a)
            self.witness.agree(a, b, distances)
            self.witness.agree(b, a, others)
            self.radii.learn(a, b, distances, others)

    def _work(self, part: Tile) -> Work:
        assert isinstance(part, Part)
        return self.radii.work(part)

    def _merge(self, part: Part, found: Found) -> None:
        self.radii.merge(part, found)
        self.tiles, self.careful_cells = self.tiles + 1, self.careful_cells + found.careful_cells

    def _tell(self, share: float) -> None:
        """share: of all pairs of windows, that are compared or need not be."""
        left = (time.monotonic() - self._started) * (1 - share) / share
        self.job.report.progress(self.tiles, max(self.tiles, round(self.tiles / share)), "tiles", left, share)

    def _size(self, pairs: Iterable[tuple[int, int]]) -> float:
        return float(sum(self._lengths[a] * self._lengths[b] for a, b in pairs))

    # ---- another attempt ---------------------------------------------------------------------------------------------

    def _state(self) -> Record:
        radii = self.radii
        about = {
            "compared": sorted(radii.compared),
            "least": [radii.radius, radii.number, radii.index],
            "tiles": self.tiles,
        }
        arrays = {str(number): bounds for number, bounds in enumerate(radii.bounds)}
        return Record(about | {"checked": self.witness.checked.as_dict(), "careful_cells": self.careful_cells}, arrays)

    def _go_on(self, records: list[Record]) -> list[Record]:
        """Take over the state after the last whole round. Returns what was found since."""
        last = max((number for number, each in enumerate(records) if "compared" in each.about), default=-1)
        if last < 0:
            return []
        (about, arrays), since = records[last], records[last + 1 :]
        self.radii.compared = {(a, b) for a, b in about["compared"]}
        self.radii.radius, self.radii.number, self.radii.index = about["least"]
        self.radii.bounds = [arrays[str(number)] for number in range(len(arrays))]
        self.tiles, self.careful_cells = int(about["tiles"]), int(about["careful_cells"])
        self.resumed = self.tiles + len(since)
        self.witness.checked.add(about["checked"])
        self.job.report.log(f"going on with {self.resumed} tiles of an earlier attempt")
        return since


def _record(number: int, found: Found) -> Record:
    arrays = {name: value for name, value in vars(found).items() if name != "careful_cells"}
    return Record({"part": number, "careful_cells": found.careful_cells}, arrays)


def _found(record: Record) -> Found:
    return Found(**record.arrays, careful_cells=int(record.about["careful_cells"]))
