"""Which column is the time: the one named, or the only one in which every row says a time in one way."""

from collections.abc import Collection, Sequence
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

    @property
    def is_clock(self) -> bool:
        """Whether every value is a time of day."""
        return bool(self.times and self.times.seen and self.times.of_day)


@dataclass(frozen=True)
class TimeChoice:
    """The time column, and how it is written: None for a native time, a Reading, or the name of a Unix unit.

    clock: a column with the times of day, where the time column holds the dates alone.
    """

    index: int
    reading: Reading | str | None
    clock: int | None = None


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
        index, clock = _named(fields, settings.time_column)
        return TimeChoice(index, _reading(fields[index], settings, place), clock)
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


def refuse_unknown(text: Collection[str], fields: Sequence[Field]) -> None:
    """Refuse names in `text` that no column has."""
    names = [field.name for field in fields]
    if unknown := sorted(set(text).difference(names)):
        known = ", ".join(map(quoted, names[:20]))
        raise BadOption(f"`text` names {quoted(unknown[0])}, but the columns are {known}.", option="text")


def refuse_dates_alone(fields: Sequence[Field], choice: TimeChoice, settings: Settings) -> None:
    """Refuse dates that repeat beside a column of times of day, which nobody has said to leave out."""
    clock = next((field for field in fields if field.is_clock), None)
    if clock is None or choice.clock is not None or settings.time_column is not None:
        return
    name = fields[choice.index].name
    raise Uncertain(
        f"The dates in column {quoted(name)} repeat, and column {quoted(clock.name)} holds times of day. Set "
        f"`time_column` to {quoted(f'{name},{clock.name}')} to read the two together, or to {quoted(name)} for the dates "
        "alone.",
        column=name,
        option="time_column",
    )


def _named(fields: Sequence[Field], wanted: str) -> tuple[int, int | None]:
    """The column of that name or number; or two parted by a comma: one of dates, and one of times of day."""
    if (index := _index(fields, wanted)) is not None:
        return index, None
    date, _, clock = (_index(fields, part.strip()) for part in wanted.partition(","))
    if date is not None and clock is not None:
        if is_native_time(fields[date].type) or not fields[clock].is_clock:
            raise BadOption(
                f"`time_column` is {quoted(wanted)}, but the first must be dates as text and the second, in every row, "
                "times of day such as 13:45 or 13:45:10.5.",
                option="time_column",
            )
        return date, clock
    names = ", ".join(quoted(field.name) for field in fields[:20])
    raise BadOption(f"`time_column` is {quoted(wanted)}, but the columns are {names}.", option="time_column")


def _index(fields: Sequence[Field], wanted: str) -> int | None:
    for index, field in enumerate(fields):
        if field.name == wanted:
            return index
    if wanted.isdecimal() and int(wanted) < len(fields):
        return int(wanted)
    return None


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
