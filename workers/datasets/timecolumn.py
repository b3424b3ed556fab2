"""Which column is the time: the one named, or the only one in which every row says a time in one way."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from workers.datasets.clock import Reading, compiled
from workers.datasets.options import Settings
from workers.datasets.refusals import BadOption, Uncertain, Unfit, quoted
from workers.datasets.times import AUTOMATIC, UNIX, Place, TimeSurvey, not_a_time


@dataclass
class Field:
    """A column as a source offers it. type: float64 or another number, string, timestamp or date, or bool.

    times: what a survey of its text found, where there was one.
    """

    name: str
    type: pa.DataType
    times: TimeSurvey | None = None

    @property
    def is_time(self) -> bool:
        """Whether every value, or the type itself, says a time."""
        return is_native_time(self.type) or bool(self.times and self.times.whole)


@dataclass(frozen=True)
class TimeChoice:
    """The time column, and how it is written: None for a native time, a Reading, or the name of a Unix unit."""

    index: int
    reading: Reading | str | None


def is_native_time(type: pa.DataType) -> bool:
    """Timestamps and dates; not durations, not times of day."""
    return bool(pt.is_timestamp(type) or pt.is_date(type))


def readings(settings: Settings) -> tuple[Reading, ...]:
    """What to try on text: the sender's format alone, or ours. Raises BadOption for a format that means nothing."""
    if settings.time_format is None:
        return AUTOMATIC
    return () if settings.time_format in UNIX else (compiled(settings.time_format),)


def choose(fields: Sequence[Field], settings: Settings, place: Place) -> TimeChoice | None:
    """The time column, or None. Raises a refusal naming the option or the row that stands in the way."""
    if settings.time_column is not None:
        if not settings.time_column.strip():
            return None
        index = _named(fields, settings.time_column)
        return TimeChoice(index, _reading(fields[index], settings, place))
    candidates = [index for index, field in enumerate(fields) if field.is_time]
    if len(candidates) > 1:
        names = ", ".join(quoted(fields[index].name) for index in candidates)
        raise Uncertain(f"Each of the columns {names} could be the time. Set `time_column`.", option="time_column")
    if candidates:
        return TimeChoice(candidates[0], _reading(fields[candidates[0]], settings, place))
    if settings.time_format is not None:
        raise BadOption(
            f"No column of text is written as {quoted(settings.time_format)} in every row. Set `time_column` too.",
            option="time_column",
        )
    for field in fields:
        if field.times and (stray := field.times.stray):
            raise not_a_time(stray.text, next(iter(field.times.tallies)).name, field.name, place(stray.record))
    return None


def _named(fields: Sequence[Field], wanted: str) -> int:
    for index, field in enumerate(fields):
        if field.name == wanted:
            return index
    if wanted.isdecimal() and int(wanted) < len(fields):
        return int(wanted)
    names = ", ".join(quoted(field.name) for field in fields[:20])
    raise BadOption(f"`time_column` is {quoted(wanted)}, but the columns are {names}.", option="time_column")


def _reading(field: Field, settings: Settings, place: Place) -> Reading | str | None:
    if is_native_time(field.type):
        return None
    if settings.time_format is not None:
        return settings.time_format if settings.time_format in UNIX else compiled(settings.time_format)
    if field.times is None or not field.times.tallies:
        raise Uncertain(
            f"How the times in column {quoted(field.name)} are written is not known. Set `time_format`, for example to "
            "%Y%m%d, or to unix_s, unix_ms, unix_us or unix_ns for counts since 1970.",
            column=field.name,
            option="time_format",
        )
    whole = field.times.whole
    if not whole and (stray := field.times.stray):
        raise not_a_time(stray.text, next(iter(field.times.tallies)).name, field.name, place(stray.record))
    if len(whole) > 1:
        ways = " or ".join(quoted(reading.name) for reading in whole)
        first = field.times.first
        raise Uncertain(
            f"{quoted(first.text if first else '')} in column {quoted(field.name)}, like every time there, can be read "
            f"as {ways}. Set `time_format`.",
            row=place(first.record) if first else None,
            column=field.name,
            option="time_format",
        )
    if field.times.mixes_zones(whole[0]):
        raise Unfit(
            f"In column {quoted(field.name)} some times say their zone and others do not. Give it to all, or to none.",
            column=field.name,
        )
    return whole[0]
