"""What columns say of times: the readings tried on text, a survey of them, and the microseconds in the end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from workers.datasets.cells import Bools, Cell, as_bools, earlier, matching
from workers.datasets.clock import Int64s, Reading
from workers.datasets.refusals import Refused, Unfit, quoted

CLOCK: Final = (
    r"(?:(?:[Tt]| +)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?)?"
)
YEAR, MONTH, DAY = r"(?P<year>\d{4})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"

AUTOMATIC: Final = (
    Reading("%Y-%m-%d", rf"{YEAR}-{MONTH}(?:-{DAY}{CLOCK})?"),
    Reading("%Y/%m/%d", rf"{YEAR}/{MONTH}/{DAY}{CLOCK}"),
    *(Reading(f"%d{sign}%m{sign}%Y", rf"{DAY}[{sign}]{MONTH}[{sign}]{YEAR}{CLOCK}") for sign in "/.-"),
    *(Reading(f"%m{sign}%d{sign}%Y", rf"{MONTH}[{sign}]{DAY}[{sign}]{YEAR}{CLOCK}") for sign in "/.-"),
)
"""Tried where no `time_format` is given. Day first and month first may both fit: then it is asked, not guessed."""

UNIX: Final = {"unix_s": 1_000_000.0, "unix_ms": 1_000.0, "unix_us": 1.0, "unix_ns": 0.001}
"""Special `time_format`s: how many microseconds their unit has."""

EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Years 1 to 9999, in microseconds."""

OF_DAY: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
"""A time of day, which a column of dates may lack."""

Place = Callable[[int], int | None]


@dataclass
class Tally:
    """How one reading fares in one column."""

    readable: int = 0
    zoned: int = 0
    stray: Cell | None = None


class TimeSurvey:
    """What one column's cells say of times, collected batch by batch. A reading that fails most cells is dropped."""

    def __init__(self, readings: tuple[Reading, ...]) -> None:
        self.seen = 0
        self.first: Cell | None = None
        self.tallies = {reading: Tally() for reading in readings}
        self.of_day = True

    def add(self, cells: pa.Array, first_record: int) -> None:
        """Take in a batch. cells: trimmed strings, null where missing; a missing time is a stray too."""
        self.seen += len(cells)
        self.first = earlier(self.first, cells, np.ones(len(cells), bool), first_record)
        self.of_day = self.of_day and bool(matching(cells, OF_DAY).all())
        for reading, tally in list(self.tallies.items()):
            _, readable, zoned = reading.microseconds(cells)
            tally.readable += int(readable.sum())
            tally.zoned += int(zoned.sum())
            tally.stray = earlier(tally.stray, cells, ~readable, first_record)
            if tally.readable * 2 < self.seen:
                del self.tallies[reading]

    def give_up(self) -> None:
        """Stop looking: the column holds something else."""
        self.tallies.clear()
        self.of_day = False

    @property
    def whole(self) -> list[Reading]:
        """The readings in which every cell is a time."""
        return [reading for reading, tally in self.tallies.items() if tally.readable == self.seen > 0]

    @property
    def stray(self) -> Cell | None:
        """In a column mostly of times: the first cell that is none, in the reading that fits most."""
        best = max(self.tallies.values(), key=lambda tally: tally.readable, default=None)
        return best.stray if best else None

    def mixes_zones(self, reading: Reading) -> bool:
        """Whether some times say their zone and others do not."""
        return 0 < self.tallies[reading].zoned < self.seen


def microseconds(values: pa.Array, reading: Reading | str | None, name: str, first_record: int, place: Place) -> Int64s:
    """int64 (n,) microseconds since 1970-01-01T00:00Z. Raises Unfit at a value that is missing or no such time.

    reading: None for a native timestamp or date, a key of UNIX for numbers, a Reading for text and whole numbers.
    """
    if reading is None:
        moments, readable = _native(values)
    elif isinstance(reading, str):
        moments, readable = _unix(values, UNIX[reading])
    else:
        moments, readable, _ = reading.microseconds(_as_text(values))
    readable &= (moments >= EARLIEST) & (moments <= LATEST)
    if readable.all():
        return moments
    index = int((~readable).argmax())
    written = reading if isinstance(reading, str) else reading.name if reading else "a time of the years 1 to 9999"
    raise not_a_time(_shown(values[index]), written, name, place(first_record + index))


def _shown(value: pa.Scalar) -> object:
    """A value as a person may recognise it; one beyond what Python's times can hold as its number and unit."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return f"{value.value} {value.type.unit} since 1970"


def not_a_time(value: object, written: str, name: str, row: int | None) -> Refused:
    """The refusal of one value of a time column."""
    what = "is missing" if value in (None, "") else f"{quoted(value)} cannot be read as {quoted(written)}"
    return Unfit(
        f"In the time column {quoted(name)} a time {what}. Correct the row, set `time_format`, or choose another "
        "`time_column` (empty for none).",
        row=row,
        column=name,
        option="time_format",
    )


def _native(values: pa.Array) -> tuple[Int64s, Bools]:
    if pt.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    present = as_bools(values.is_valid())
    # Finer than a microsecond is cut off, as in text; coarser units may hold times too far to count in microseconds.
    moments = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64()).fill_null(0)
    unit = {"s": 1_000_000, "ms": 1_000}.get(values.type.unit, 1)
    if unit > 1:
        raw = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        present &= (raw >= EARLIEST // unit) & (raw <= LATEST // unit)
    return np.asarray(moments.to_numpy(zero_copy_only=False), dtype=np.int64), present


def _unix(values: pa.Array, microseconds_each: float) -> tuple[Int64s, Bools]:
    if pt.is_string(values.type):
        values = _numbers(values)
    present = as_bools(values.is_valid())
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    if numbers.dtype.kind in "iu":
        each = int(1 / microseconds_each + 0.5) if microseconds_each < 1 else int(microseconds_each)
        present &= (numbers >= _bound(EARLIEST, microseconds_each)) & (numbers <= _bound(LATEST, microseconds_each))
        safe = np.where(present, numbers, 0).astype(np.int64)
        return safe // each if microseconds_each < 1 else safe * each, present
    scaled = np.asarray(numbers, dtype=np.float64) * microseconds_each
    present &= np.isfinite(scaled) & (scaled >= EARLIEST) & (scaled <= LATEST)
    return np.rint(np.where(present, scaled, 0)).astype(np.int64), present


def _numbers(cells: pa.Array) -> pa.Array:
    """int64 where all are whole numbers, for which float64 would be too coarse; else float64; null where none."""
    cells = pc.if_else(matching(cells, r"[+-]?\d{1,30}(?:\.\d*)?(?:[eE][+-]?\d{1,2})?"), cells, None)
    try:
        return cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return cells.cast(pa.float64())


def _bound(limit: int, microseconds_each: float) -> int:
    scaled = limit * 1000 if microseconds_each < 1 else limit // int(microseconds_each)
    return max(-(2**63), min(2**63 - 1, scaled))


def _as_text(values: pa.Array) -> pa.Array:
    """Whole numbers as digits, so that `%Y%m%d` reads 19580329; other values than text and whole numbers as null."""
    if pt.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        whole = np.isfinite(numbers) & (np.abs(numbers) < 2**53) & (numbers == np.floor(numbers))
        values = pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole)
    return values if pt.is_string(values.type) else values.cast(pa.string())
