"""Cells that are no numbers and stand where numbers do: what is the matter with them, and what helps."""

import re
from collections.abc import Sequence
from typing import Final

from workers.datasets.cells import Cell
from workers.datasets.numbers import ANY_NUMBER
from workers.datasets.refusals import quoted

MINUS_SIGNS: Final = str.maketrans(dict.fromkeys("\u2212\u2012\u2013\ufe63\uff0d", "-"))
SIGNED: Final = re.compile(
    rf"(?P<before>[^\w.,]{{0,3}}|[A-Z]{{3}} ?)(?:{ANY_NUMBER})(?P<after>[^\d.,:]{{0,8}})", re.ASCII
)
DATE_LIKE: Final = re.compile(
    r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[-/. ][A-Za-z]{3,9}[-/. ,]+\d{2,4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})(?:[T ].*)?"
)


def sign_beside(text: str) -> str | None:
    """What stands beside the number in `1.5%`, `$3`, `(12)` or `7 km`; None where the cell is anything else."""
    found = SIGNED.fullmatch(text.strip())
    return ((found["before"] + found["after"]).strip() or None) if found else None


def has_digits(text: str) -> bool:
    """Whether a cell says some number, so that it should not be called missing."""
    return any(character.isdigit() for character in text)


def most_telling(cells: Sequence[tuple[Cell, str]]) -> tuple[Cell, str] | None:
    """Of cells with their columns' names, the one to speak of: a number with a sign, then one with digits, then any."""
    for judge in (_is_signed, _is_odd):
        if told := next(((cell, name) for cell, name in cells if judge(cell.text)), None):
            return told
    return cells[0] if cells else None


def _is_signed(text: str) -> bool:
    return sign_beside(text) is not None or minus_in(text)


def _is_odd(text: str) -> bool:
    return has_digits(text) and not DATE_LIKE.match(text)


def minus_in(text: str) -> bool:
    """Whether the cell would be a number, were its minus the usual one."""
    plain = text.translate(MINUS_SIGNS)
    return plain != text and re.fullmatch(ANY_NUMBER, plain, re.ASCII) is not None


def remedy(text: str) -> tuple[str, str]:
    """What to do about one such cell, and the option that may help."""
    if minus_in(text):
        return "Its minus is not the usual one: write `-`.", "text"
    if sign := sign_beside(text):
        if "(" in sign:
            return "Write it without parentheses, with a minus if they mean one.", "text"
        return f"Remove the {quoted(sign)} from it.", "text"
    if has_digits(text):
        return "Correct it.", "text"
    return "Correct it, or if it stands for a missing value, name it in `missing`.", "missing"
