"""What every format offers, whatever its file looks like: named columns, and their values in order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.types as pt

from workers.datasets.contract import Format
from workers.datasets.refusals import TooLarge, Unfit, quoted
from workers.datasets.timecolumn import Field, is_native_time
from workers.datasets.times import Place

Batch = tuple[int, int, pa.Array]
"""A column's position, the number of its first record, and some of its values."""


class Source(Protocol):
    """An opened file. `batches` may be read more than once."""

    @property
    def format(self) -> Format:
        """What the file turned out to be."""

    @property
    def fields(self) -> Sequence[Field]:
        """Its columns, in order."""

    @property
    def rows(self) -> int:
        """How many values each has."""

    @property
    def written(self) -> Mapping[str, str | int | bool]:
        """How it is written, by the names of options, where that had to be settled."""

    @property
    def place(self) -> Place:
        """Where people find a record, counted from 1: its line in text, else its row."""

    def batches(self, time: int | None) -> Iterator[Batch]:
        """All values; those of column `time` as they are written, so that their times can be read from them."""


NUMERIC: Final = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_null)
TEXT: Final = (pt.is_string, pt.is_large_string, pt.is_boolean)


def is_numeric(type: pa.DataType) -> bool:
    """Whether a column of this type becomes float64."""
    return any(test(type) for test in NUMERIC)


def checked(fields: Sequence[Field], rows: int, max_columns: int, max_bytes: int) -> None:
    """Refuse what no source may offer: no rows, too many columns, doubled or unusable names, types we cannot store."""
    if not fields or not rows:
        raise Unfit("The file holds no rows. Send one with at least one row of numbers.")
    if len(fields) > max_columns:
        raise TooLarge(
            f"The file has {len(fields):,} columns; at most {max_columns:,} are read. Send the ones you need."
        )
    if rows * len(fields) * 8 > max_bytes:
        raise TooLarge(
            f"The file holds {rows:,} rows of {len(fields):,} columns; as float64 that is more than {max_bytes:,} "
            "bytes, the limit here. Send fewer rows or columns."
        )
    seen: set[str] = set()
    for number, field in enumerate(fields):
        if field.name in seen:
            raise Unfit(f"Two columns are named {quoted(field.name)}. Rename one.", column=field.name)
        if "\x00" in field.name or any(0xD800 <= ord(c) <= 0xDFFF for c in field.name):
            raise Unfit(
                f"The name of column number {number + 1}, counted from 1, holds a NUL or half a character. Rename it.",
                column=number,
            )
        if not (is_numeric(field.type) or is_native_time(field.type) or any(test(field.type) for test in TEXT)):
            raise Unfit(
                f"Column {quoted(field.name)} holds values of type {field.type}, which are no single numbers. Leave it "
                "out, or save its parts as columns of their own.",
                column=field.name,
            )
        seen.add(field.name)
