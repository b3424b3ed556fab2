"""A pan profile by our own kernel: the self-joins of all window lengths in one stream of tiles.

The neighbours at one window length are mostly near at the next one as well. Each join starts from those of the longest one that is
finished, so that little is left to be found; and no thread waits for a join to end, since the next one's tiles follow.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

from workers.matrix_profile.base import Checked
from workers.matrix_profile.frame import Job
from workers.matrix_profile.pan_length import Length, Part
from workers.matrix_profile.pan_row import Row
from workers.matrix_profile.profile import Ints
from workers.matrix_profile.records import Record, Records
from workers.matrix_profile.series import Series
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.tile import Found, Tile, Work

KEPT: Final = "pan.checkpoint"


class Pan:
    """The pan profile of one job. lengths: int64, of windows in samples, ascending.

    rows: what is finished.  tiles: computed and taken over from an earlier attempt; resumed: those taken over.
    """

    def __init__(self, job: Job, series: Series, lengths: Ints) -> None:
        self.job, self.report = job, job.report
        self.treated = scaled([series.values], normalize=job.distance.normalize)
        self.lengths = {m: Length(series.values, self.treated, job.distance, m) for m in lengths.tolist()}
        self.rows: dict[int, Row] = {}
        self._longest = 0  # window length that is finished
        self._nearby: Ints | None = None  # the neighbours there
        self.checked, self.tiles, self.resumed, self.careful_cells = Checked(), 0, 0, 0

    def find(self) -> dict[int, Row]:
        """The rows of all window lengths. Goes on from what an earlier attempt kept."""
        folder, earlier = Path(self.job.task["folder"]), [Path(each) for each in self.job.task.get("earlier") or ()]
        settings, paths = ("pan", self.job.distance.normalize), [each / KEPT for each in earlier]
        with Records(folder / KEPT, paths, self.report, self.treated.series, *settings) as self._kept:
            for record in self._kept.found:
                self._go_on(record)
            self._compute([length for m, length in self.lengths.items() if m not in self.rows])
        return self.rows

    def _compute(self, lengths: list[Length]) -> None:
        self._started, self._before = time.monotonic(), len(self.rows)
        parts = [part for length in lengths for part in length.parts if part.number in length.left]
        self.resumed += sum(len(length.parts) - len(length.left) for length in lengths)
        self.tiles = self.resumed
        with ThreadPoolExecutor(max(1, self.job.ground.threads // 2), "pan") as pool:
            finishing = {length.m: pool.submit(self._finish, length) for length in lengths if not length.left}
            with closing(self.job.ground.hands().each(parts, self._work)) as arriving:
                for tile, found in arriving:
                    length = self._merge(tile, found)
                    if not length.left:
                        finishing[length.m] = pool.submit(self._finish, length)
                    self._take(finishing, [m for m, future in finishing.items() if future.done()])
            self._take(finishing, list(finishing))

    def _finish(self, length: Length) -> tuple[Row, Ints]:
        if not length.started:  # no window has another that it may be compared with
            length.start(None)
        return length.finish(self.report)

    def _work(self, part: Tile) -> Work:
        assert isinstance(part, Part)
        length = self.lengths[part.m]
        if not length.started:
            self._keep(length.start(self._nearby))
        return length.work(part)

    def _merge(self, part: Tile, found: Found) -> Length:
        assert isinstance(part, Part)
        length = self.lengths[part.m]
        self._keep(length.merge(part, found))
        self.tiles, self.careful_cells = self.tiles + 1, self.careful_cells + found.careful_cells
        return length

    def _take(self, finishing: dict[int, Future[tuple[Row, Ints]]], these: list[int]) -> None:
        """These window lengths are finished."""
        for m in these:
            row, neighbors = finishing.pop(m).result()
            self.rows[m] = row
            if m > self._longest:
                self._longest, self._nearby = m, neighbors
            self.checked.add(row.checked)
            self._keep(row.record(m))
            done, total = len(self.rows), len(self.lengths)
            left = (time.monotonic() - self._started) / (done - self._before) * (total - done)
            self.report.progress(done, total, "windows", left)

    def _keep(self, record: Record | None) -> None:
        if record is not None:
            self._kept.add(record)

    def _go_on(self, record: Record) -> None:
        """Take over a record of an earlier attempt: a finished row, or a tile."""
        length = self.lengths.get(int(record.about["m"]))
        if length is None:
            return
        if "checked" not in record.about:
            length.go_on(record)
            return
        row = self.rows[length.m] = Row.of(record)
        self.checked.add(row.checked)
        self.resumed += len(length.parts)
