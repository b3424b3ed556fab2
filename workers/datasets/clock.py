"""From written times to microseconds since 1970-01-01T00:00Z: patterns with named groups, and what each group means."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workers.datasets.cells import Bools, as_bools
from workers.datasets.refusals import BadOption, quoted

Int64s = npt.NDArray[np.int64]

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
UTC: Final = frozenset({"Z", "z", "UTC"})
NONSENSE: Final = -(2**40)
"""Stands for a group without meaning (a 13th month's name, a zone of 99 hours); no date can hold it."""


def _zone_minutes(text: str) -> int:
    if text in UTC:
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 14 or minutes > 59:
        return NONSENSE
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


def _month_number(text: str) -> int:
    return MONTHS.index(text[:3].lower()) + 1 if text[:3].lower() in MONTHS else NONSENSE


def _full_year(text: str) -> int:
    return int(text) + (2000 if int(text) < 69 else 1900)  # as POSIX and Python's strptime do


MEANINGS: Final[dict[str, tuple[int, Callable[[str], int]]]] = {
    "year": (0, int),
    "short_year": (0, _full_year),
    "month": (1, int),
    "month_name": (1, _month_number),
    "day": (1, int),
    "hour": (0, int),
    "hour12": (0, lambda text: int(text) % 12),
    "half": (0, lambda text: 12 if text.lower() == "pm" else 0),
    "minute": (0, int),
    "second": (0, int),
    "fraction": (0, lambda text: int(text[:6].ljust(6, "0"))),  # finer than a microsecond is cut off
    "zone": (0, _zone_minutes),
}
"""Group name → what it is when absent, and how to read it."""

DIRECTIVES: Final = {
    "Y": r"(?P<year>\d{4})",
    "y": r"(?P<short_year>\d{2})",
    "m": r"(?P<month>1[0-2]|0[1-9]|[1-9])",
    "b": r"(?P<month_name>[A-Za-z]{3,9})",
    "B": r"(?P<month_name>[A-Za-z]{3,9})",
    "d": r"(?P<day>3[01]|[12]\d|0[1-9]|[1-9])",
    "H": r"(?P<hour>2[0-3]|[01]\d|\d)",
    "I": r"(?P<hour12>1[0-2]|0[1-9]|[1-9])",
    "p": r"(?P<half>(?i:am|pm))",
    "M": r"(?P<minute>[0-5]\d|\d)",
    "S": r"(?P<second>[0-5]\d|\d)",
    "f": r"(?P<fraction>\d{1,9})",
    "z": r"(?P<zone>Z|z|UTC|[+-]\d{2}:?\d{2})",
    "a": r"[A-Za-z]{2,9}",
    "A": r"[A-Za-z]{2,9}",
    "%": "%",
}
DIRECTIVES_TOGETHER: Final = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}


@dataclass(frozen=True)
class Reading:
    """One way to read a time: a pattern whose named groups are keys of MEANINGS."""

    name: str
    pattern: str

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The named groups, in order."""
        return tuple(re.compile(self.pattern).groupindex)

    def microseconds(self, cells: pa.Array) -> tuple[Int64s, Bools, Bools]:
        """Read strings (n,).

        Returns int64 (n,) microseconds, 0 where unreadable; bool (n,) which are readable; bool (n,) which say a zone.
        """
        found = pc.extract_regex(cells, rf"\A(?:{self.pattern})\z")
        readable = as_bools(found.is_valid())
        if not readable.any():
            return np.zeros(len(cells), np.int64), readable, readable
        texts = {name: found.field(i) for i, name in enumerate(self.groups)}
        parts = {name: _meant(text, *MEANINGS[name]) for name, text in texts.items()}
        zoned = np.zeros(len(cells), bool)
        if "zone" in texts:
            zoned = readable & as_bools(pc.not_equal(texts["zone"], ""))
        return _since_1970(parts, readable, len(cells), zoned)


def compiled(time_format: str) -> Reading:
    """A strptime format as a Reading; raises BadOption for a directive we do not know, a doubled one, or no year."""
    spelled = re.sub("%([FTRD])", lambda m: DIRECTIVES_TOGETHER[m[1]], time_format)
    pattern, known = "", ", ".join(f"%{letter}" for letter in DIRECTIVES)
    for literal, directive in re.findall(r"([^%]+)|%(.?)", spelled, re.DOTALL):
        if literal:
            pattern += re.escape(literal)
        elif directive in DIRECTIVES:
            pattern += DIRECTIVES[directive]
        else:
            raise BadOption(
                f"`time_format` {quoted(time_format)} has `%{directive}`, which is not known. Known are {known}, "
                "and unix_s, unix_ms, unix_us, unix_ns.",
                option="time_format",
            )
    try:
        groups = re.compile(pattern).groupindex
    except re.error:
        raise BadOption(
            f"`time_format` {quoted(time_format)} names a part of the time twice.", option="time_format"
        ) from None
    if not {"year", "short_year"} & set(groups):
        raise BadOption(
            f"`time_format` {quoted(time_format)} has no year (%Y or %y). It is written like `%d.%m.%Y` or "
            "`%Y-%m-%d %H:%M:%S`; `unix_s` is for seconds since 1970.",
            option="time_format",
        )
    return Reading(time_format, pattern)


def _meant(texts: pa.Array, absent: int, meaning: Callable[[str], int]) -> Int64s:
    """The number each text stands for. Times repeat their parts, so each distinct text is read once."""
    encoded = texts.dictionary_encode()
    values = np.array([meaning(text) if text else absent for text in encoded.dictionary.to_pylist()], np.int64)
    return values[encoded.indices.to_numpy(zero_copy_only=False)] if len(values) else np.zeros(len(texts), np.int64)


def _since_1970(parts: dict[str, Int64s], readable: Bools, n: int, zoned: Bools) -> tuple[Int64s, Bools, Bools]:
    def part(*names: str) -> Int64s:
        return sum((parts[name] for name in names if name in parts), np.zeros(n, np.int64))

    year, month, day = part("year", "short_year"), part("month", "month_name"), part("day")
    month = month if {"month", "month_name"} & parts.keys() else np.ones(n, np.int64)
    day = day if "day" in parts else np.ones(n, np.int64)
    hour, minute, second, zone = part("hour", "hour12", "half"), part("minute"), part("second"), part("zone")
    valid = readable & (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (zone != NONSENSE)
    valid &= (hour <= 23) & (minute <= 59) & (second <= 59) & (day >= 1) & (day <= 31)
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(valid, day - 1, 0).astype("timedelta64[D]")
    valid &= days.astype("datetime64[M]") == months  # the 31st of a month of 30 days
    clock = (hour * 60 + minute - zone) * 60 + second
    moments = (days.astype(np.int64) * 86_400 + clock) * 1_000_000 + part("fraction")
    return np.where(valid, moments, 0), valid, zoned & valid
