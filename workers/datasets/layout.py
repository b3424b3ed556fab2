"""The first records of a table of text, parted by one delimiter, and what speaks for that delimiter."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from workers.datasets.numbers import allowed, pattern_of
from workers.datasets.options import DELIMITERS, Settings
from workers.datasets.refusals import Unfit
from workers.datasets.times import AUTOMATIC

HEAD_RECORDS: Final = 200
NO_DELIMITER: Final = "\x1f"
"""Parts the fields of a one-column file, that is, nothing: it may hold decimal commas."""


@dataclass(frozen=True)
class Split:
    """The first records as one delimiter parts them. recognised: matches a number, a time, or a sign for missing."""

    delimiter: str
    records: list[list[str]]
    recognised: re.Pattern[str]

    @cached_property
    def width(self) -> int:
        """The number of fields most records have."""
        return Counter(map(len, self.records)).most_common(1)[0][0]

    def usual(self) -> bool:
        """Whether at least half of the records have that width, and it is more than one."""
        return self.width > 1 and sum(len(r) == self.width for r in self.records) * 2 >= len(self.records)

    def even(self) -> bool:
        """Whether every record has that width."""
        return all(len(record) == self.width for record in self.records)

    def clean(self) -> bool:
        """Whether no field below the first record that we do not understand holds another delimiter."""
        others = set(DELIMITERS) - {self.delimiter}
        return not any(others & set(f) and not self._knows(f) for record in self.records[1:] for f in record)

    def understood(self) -> bool:
        """Whether every field below the first record is a number, a time or missing."""
        return all(self._knows(field) for record in self.records[1:] for field in record)

    def partly_understood(self) -> bool:
        """Whether every field of some column is, below the first record."""
        below = self.records[1:]
        return any(all(self._knows(record[i]) for record in below if i < len(record)) for i in range(self.width))

    def _knows(self, field: str) -> bool:
        return self.recognised.fullmatch(field.strip()) is not None


JUDGES: Final[tuple[Callable[[Split], bool], ...]] = (
    Split.clean,
    Split.even,
    Split.understood,
    Split.partly_understood,
)
"""Asked in turn while more than one delimiter is left; each keeps those it speaks for, if there are any."""


def split(body: str, more: bool, delimiter: str, settings: Settings) -> Split:
    """Part the first records of `body`. more: whether the file goes on, so that the last record may be cut."""
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    try:
        records = list(islice((record for record in reader if record), HEAD_RECORDS))
    except csv.Error as wrong:
        raise Unfit(f"The first lines cannot be taken apart ({wrong}).", row=1) from None
    if more and 1 < len(records) < HEAD_RECORDS:
        records.pop()
    return Split(delimiter, records, _recognised(settings))


def number_or_missing(settings: Settings) -> str:
    """Matches what the options allow as a number, or what says that there is none."""
    return "|".join([pattern_of(allowed(settings)), *map(re.escape, sorted(settings.missing))])


def _recognised(settings: Settings) -> re.Pattern[str]:
    times = (re.sub(r"\?P<\w+>", "?:", reading.pattern) for reading in AUTOMATIC)
    return re.compile("|".join([number_or_missing(settings), *times]), re.ASCII)
