"""What the cells of one text column say, read once before anything is decided."""

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workers.datasets.cells import as_bools, cleaned, matching
from workers.datasets.clock import Reading
from workers.datasets.numbers import ANY_NUMBER, Convention, NumberSurvey
from workers.datasets.times import TimeSurvey

CellKind = Literal["number", "time", "text", "empty"]


def kinds_of(cells: pa.Array, readings: tuple[Reading, ...]) -> list[CellKind]:
    """What each of the cells of one record holds. cells: trimmed strings, null where missing."""
    numbers, times = matching(cells, ANY_NUMBER), np.zeros(len(cells), bool)
    for reading in readings:
        times |= reading.microseconds(cells)[1]
    empty = as_bools(cells.is_null())
    return [
        "empty" if is_empty else "number" if is_number else "time" if is_time else "text"
        for is_empty, is_number, is_time in zip(empty, numbers, times, strict=True)
    ]


class ColumnSurvey:
    """Counts over one column's cells: missing ones, numbers, times."""

    def __init__(self, conventions: tuple[Convention, ...], readings: tuple[Reading, ...], markers: pa.Array) -> None:
        self.markers = markers
        self.seen = self.missing = self.blank = 0
        self.numbers = NumberSurvey(conventions)
        self.times = TimeSurvey(readings)

    def add(self, cells: pa.Array, first_record: int) -> None:
        """Take in a batch of raw cells, the first of which is of that record."""
        clean = cleaned(cells, self.markers)
        self.seen += len(cells)
        self.missing += clean.null_count
        self.blank += int(as_bools(pc.equal(pc.binary_length(cells), 0)).sum())
        self.numbers.add(clean, first_record)
        if self.numbers.count == self.seen - self.missing > 0:
            self.times.give_up()  # no cell is both, and trying is what takes long
        self.times.add(clean, first_record)

    @property
    def kind(self) -> CellKind:
        """What the column holds: numbers where at least half of its present cells are, times where all are."""
        present = self.seen - self.missing
        if present == 0:
            return "empty"
        if self.numbers.count * 2 >= present:
            return "number"
        return "time" if self.times.whole else "text"
