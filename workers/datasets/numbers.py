"""How numbers are written: decimal and thousands signs, which of them a file's cells allow, and what they say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from workers.datasets.cells import Cell, as_bools, containing, earlier, first_few, matching
from workers.datasets.options import Settings
from workers.datasets.refusals import BadOption, Refused, Uncertain, quoted

INFINITE: Final = r"[+-]?(?i:inf(?:inity)?)"
SIGNS: Final = {"": "", ",": ",", ".": r"\.", " ": "[ \xa0\u2009\u202f]", "'": "['’]"}


@dataclass(frozen=True)
class Convention:
    """One way to write a number: its decimal sign and, where there is one, the sign between groups of three digits."""

    decimal: str
    thousands: str

    @cached_property
    def pattern(self) -> str:
        """Matches exactly the cells this convention reads (in Python's and in Arrow's regular expressions)."""
        grouped = rf"[1-9]\d{{0,2}}(?:{SIGNS[self.thousands]}\d{{3}})+|" if self.thousands else ""
        # `5.` is written by programs; `5,` by none, it is what a trailing delimiter looks like.
        fraction = r"\.\d*" if self.decimal == "." else r",\d+"
        return rf"[+-]?(?:(?:{grouped}\d+)(?:{fraction})?|{SIGNS[self.decimal]}\d+)(?:[eE][+-]?\d+)?|{INFINITE}"

    def floats(self, cells: pa.Array) -> pa.Array:
        """The numbers written in `cells`, float64; null stays null. Every cell must match the pattern."""
        if self.thousands:
            cells = pc.replace_substring_regex(cells, SIGNS[self.thousands], "")
        if self.decimal == ",":
            cells = pc.replace_substring(cells, ",", ".")
        return cells.cast(pa.float64())


CONVENTIONS: Final = tuple(
    Convention(decimal, thousands) for decimal in ".," for thousands in ("", ",", ".", " ", "'") if decimal != thousands
)
PLAIN: Final = CONVENTIONS[0]


def allowed(settings: Settings) -> tuple[Convention, ...]:
    """The conventions the options leave open; raises BadOption when there is none."""
    found = tuple(
        convention
        for convention in CONVENTIONS
        if settings.decimal in (None, convention.decimal) and settings.thousands in (None, convention.thousands)
    )
    if not found:
        raise BadOption("`decimal` and `thousands` must differ.", option="thousands")
    return found


def pattern_of(conventions: Iterable[Convention]) -> str:
    """Matches what any of the conventions reads."""
    return "|".join(convention.pattern for convention in conventions)


ANY_NUMBER: Final = pattern_of(CONVENTIONS)


@dataclass
class NumberSurvey:
    """What one column's cells say of numbers, collected batch by batch.

    conventions: those the options leave open. A number of any other convention counts too: it is no text, and has to be
    refused, not passed over.
    """

    conventions: tuple[Convention, ...]
    count: int = 0
    strays: list[Cell] = field(default_factory=list)
    """The first few cells that are no numbers."""
    with_sign: dict[str, Cell] = field(default_factory=dict)
    against: dict[str, Cell] = field(default_factory=dict)
    """For a decimal sign: a cell that ruled out a convention with it."""

    def __post_init__(self) -> None:
        self.possible = set(self.conventions)

    def add(self, cells: pa.Array, first_record: int) -> None:
        """Take in a batch. cells: trimmed strings, null where missing."""
        present = as_bools(pc.is_valid(cells))
        plain = _all_plain(cells)
        numbers = present if plain else matching(cells, ANY_NUMBER)
        self.count += int(numbers.sum())
        self.strays = first_few(self.strays, cells, present & ~numbers, first_record)
        signs = {sign: containing(cells, sign) & numbers for sign in ".,"}
        for sign, where in signs.items():
            found = earlier(self.with_sign.get(sign), cells, where, first_record)
            if found is not None:
                self.with_sign[sign] = found
        if plain and not signs["."].any():
            return  # whole numbers: every convention reads them alike
        for convention in [c for c in self.conventions if c in self.possible and not (plain and c.decimal == ".")]:
            offender = earlier(None, cells, numbers & ~matching(cells, convention.pattern), first_record)
            if offender is not None:
                self.possible.discard(convention)
                self.against[convention.decimal] = offender


def choose(columns: dict[str, NumberSurvey], delimiter: str, place: Callable[[int], int | None]) -> Convention:
    """The one convention in which the numbers of the whole file are written.

    A file has one: `1,234` alone may be either, but `2.5` or `1,5` in any column settles it. A point is taken for the
    decimal sign unless it is contradicted, or the columns are parted by `;`, as where people write decimal commas.
    Raises Uncertain where both readings are open, or none reads every number.
    """
    possible = [c for c in CONVENTIONS if all(c in survey.possible for survey in columns.values())]
    if not possible:
        raise _unlike(columns, place)
    if len({convention.decimal for convention in possible}) > 1:
        for sign in ",." if delimiter == ";" else ",":
            for name, survey in columns.items():
                if (cell := survey.with_sign.get(sign)) is not None:
                    raise Uncertain(
                        f"{quoted(cell.text)} in column {quoted(name)} can be read with {quoted(sign)} as the decimal "
                        "sign or as the thousands sign, and no number in the file settles it. Set `decimal` or `thousands`.",
                        row=place(cell.record),
                        column=name,
                        option="decimal",
                    )
    return possible[0]


def _unlike(columns: dict[str, NumberSurvey], place: Callable[[int], int | None]) -> Refused:
    """The refusal of numbers that no open convention reads all of, at the last cell that ruled one out."""
    offenders = [(cell, name) for name, survey in columns.items() for cell in survey.against.values()]
    cell, name = max(offenders, key=lambda offender: offender[0].record)
    others = {cell.text for cell, _ in offenders} - {cell.text}
    beside = f" beside {quoted(min(others))}" if others else ""
    told = any(survey.conventions != CONVENTIONS for survey in columns.values())
    why = "does not fit the options" if told else "fits no one decimal and thousands sign"
    return Uncertain(
        f"The number {quoted(cell.text)} in column {quoted(name)}{beside} {why}. Write numbers alike, or correct "
        "`decimal` and `thousands`.",
        row=place(cell.record),
        column=name,
        option="decimal",
    )


def _all_plain(cells: pa.Array) -> bool:
    """Whether Arrow reads every cell as a finite number; its `nan(…)` and overflow to infinity need a closer look."""
    try:
        floats = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.is_finite(floats)).as_py() in (True, None))
