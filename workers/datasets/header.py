"""Whether the first record names the columns: told by what stands below it, or asked."""

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


def is_header(said: bool | None, first: Sequence[CellKind], below: Sequence[CellKind], line: int | None) -> bool:
    """Whether the first record is a header. Raises Uncertain naming `header` where that cannot be told."""
    if said is not None:
        return said
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


def names(first: Sequence[str], line: int | None) -> list[str]:
    """The header's names; an empty one becomes `column_<n>`, counted from 0. Raises Unfit for doubled ones."""
    found = [name.strip().strip('"').strip() or f"column_{number}" for number, name in enumerate(first)]
    for number, name in enumerate(found):
        if name in found[:number]:
            raise Unfit(
                f"Two columns are named {quoted(name)} (numbers {found.index(name)} and {number}). Rename one; if "
                "the first line is no header, set `header` to false.",
                row=line,
                column=name,
                option="header",
            )
    return found


def numbered(width: int) -> list[str]:
    """Names for columns that have none."""
    return [f"column_{number}" for number in range(width)]
