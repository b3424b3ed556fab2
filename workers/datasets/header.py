"""Whether the first record names the columns: told by what stands below it, or asked."""

import re
from collections.abc import Sequence
from typing import Final

from workers.datasets.refusals import Uncertain, Unfit, quoted
from workers.datasets.survey import CellKind

EVIDENCE: Final[dict[tuple[CellKind, CellKind], bool]] = {
    ("text", "number"): True,
    ("text", "time"): True,
    ("number", "number"): False,
    ("number", "empty"): False,
    ("time", "time"): False,
    ("time", "empty"): False,
}
"""(first cell, column below it) → whether the first cell is a name. Other pairs say nothing."""


YEAR: Final = re.compile(r"19\d\d|20\d\d|2100", re.ASCII)


def is_header(
    said: bool | None, first: Sequence[CellKind], below: Sequence[CellKind], years: bool, line: int | None
) -> bool:
    """Whether the first record is a header. Raises Uncertain naming `header` where that cannot be told.

    years: whether the numbers in it look like years above other numbers.
    """
    if said is not None:
        return said
    if years:
        raise Uncertain(
            "The numbers in the first line could be years that name the columns, or values. Set `header`: true or false.",
            row=line,
            option="header",
        )
    votes = {EVIDENCE[pair] for pair in zip(first, below, strict=True) if pair in EVIDENCE}
    if len(votes) == 1:
        return votes.pop()
    if not votes and "number" not in below:
        return True  # nothing numeric either way; what is wrong is said where the columns are looked at
    raise Uncertain(
        "Whether the first line names the columns cannot be told from what stands below it. Set `header`: true or false.",
        row=line,
        option="header",
    )


def like_years(first: Sequence[str], kinds: Sequence[CellKind], below: Sequence[Sequence[str]]) -> bool:
    """Whether all numbers in the first record are years, one after another, and not all of those below them are.

    below: for each column, its next cells.
    """
    numbers = [i for i, kind in enumerate(kinds) if kind == "number"]
    years = [first[i].strip() for i in numbers]
    if not years or "time" in kinds or not all(map(YEAR.fullmatch, years)) or sorted(set(years)) != years:
        return False
    return any(cell.strip() and not YEAR.fullmatch(cell.strip()) for i in numbers for cell in below[i])


def names(first: Sequence[str], line: int | None) -> list[str]:
    """The header's names; an empty one becomes `column_<n>`, counted from 0. Raises Unfit for doubled ones."""
    found = [name.strip().strip('"').strip() or f"column_{number}" for number, name in enumerate(first)]
    for number, name in enumerate(found):
        if name in found[:number]:
            raise Unfit(
                f"Two columns are named {quoted(name)}: numbers {found.index(name) + 1} and {number + 1}, counted from 1. "
                "Rename one; if the first line is no header, set `header` to false.",
                row=line,
                column=name,
                option="header",
            )
    return found


def numbered(width: int) -> list[str]:
    """Names for columns that have none."""
    return [f"column_{number}" for number in range(width)]
