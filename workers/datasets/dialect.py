"""How a table of text is laid out: its delimiter, its width, where it begins. Told from its first lines, or asked."""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from workers.datasets.layout import JUDGES, NO_DELIMITER, Split, number_or_missing, split
from workers.datasets.options import DELIMITERS, Settings
from workers.datasets.refusals import BadOption, TooLarge, Uncertain, Unfit, quoted

HEAD_BYTES: Final = 4 << 20
EXCEL_HINT: Final = re.compile(r'"?sep=([,;\t|])"?\n+', re.IGNORECASE)
COMMENTS: Final = re.compile(r"(?:#[^\n]*(?:\n+|\Z))*")


@dataclass(frozen=True)
class Dialect:
    """The layout of a table of text. start: the byte its first record begins at, after `lines_before` lines."""

    delimiter: str
    width: int
    start: int
    lines_before: int

    @property
    def one_column(self) -> bool:
        """Whether a blank line could be a missing value."""
        return self.width == 1


def sniff(path: Path, settings: Settings, max_columns: int) -> Dialect:
    """The layout of normalised text.

    Raises Uncertain naming `delimiter` where more than one fits, or `header` where a line beginning with `#` could be
    one; TooLarge beyond max_columns.
    """
    with path.open("rb") as file:
        text = file.read(HEAD_BYTES).decode("utf-8", "ignore")
        more = bool(file.read(1))
    skipped = _after_lines(text, settings.skip_rows)
    blank = len(text) - len(text[skipped:].lstrip("\n"))
    if hint := EXCEL_HINT.match(text, blank):
        blank = hint.end()
        settings = replace(settings, delimiter=settings.delimiter or hint[1])
    comments = COMMENTS.match(text, blank)
    start = comments.end() if comments else blank
    if settings.header and text[blank:start].rstrip("\n").count("\n") == 0:
        start = blank  # the one line with a `#` is said to be the header
    body = text[start:]
    if not body:
        raise Unfit("The file holds nothing but comments. Send one with at least one row of numbers.", row=1)
    if "\n" not in body and more:
        raise TooLarge(f"The first line is longer than {HEAD_BYTES:,} bytes. The values of a column stand in lines.")
    _refuse_header_like(text[:blank], text[blank:start], body.partition("\n")[0])
    chosen = _chosen(body, more, settings, text)
    if chosen.width > 1 and "\n" not in body and settings.header is not False:
        raise Unfit(
            f"There is one line only, of {chosen.width:,} cells: a header and no rows, or values that name no columns. Line ends "
            "may have been lost on the way, as `curl -d` strips them; `curl --data-binary @file` and `curl -F file=@file` "
            "do not. If it is one row of values, set `header` to false.",
            row=text.count("\n", 0, start) + 1,
            option="header",
        )
    if chosen.width > max_columns:
        raise TooLarge(f"The file has {chosen.width:,} columns; at most {max_columns:,} are read. Send those you need.")
    return Dialect(chosen.delimiter, chosen.width, len(text[:start].encode()), text.count("\n", 0, start))


def _after_lines(text: str, lines: int) -> int:
    """Where the text goes on after so many lines."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            raise BadOption(
                f"`skip_rows` is {lines}, but the file has no more than {text.count(chr(10)) + 1} lines.",
                option="skip_rows",
            )
    return at


def _chosen(body: str, more: bool, settings: Settings, text: str) -> Split:
    if settings.delimiter is not None:
        return split(body, more, settings.delimiter, settings)
    likely = [found for found in (split(body, more, sign, settings) for sign in DELIMITERS) if found.usual()]
    for judge in JUDGES:
        if len(likely) > 1:
            likely = [found for found in likely if judge(found)] or likely
    if len(likely) > 1:
        found = " and ".join(quoted(one.delimiter) for one in likely)
        raise Uncertain(f"The columns could be parted by {found}. Set `delimiter`.", row=1, option="delimiter")
    alone = split(body, more, NO_DELIMITER, settings)
    if not likely:
        _refuse_spaces(alone, settings, text)
        return alone
    return _comma_or_decimal(likely[0], alone, settings, text)


def _comma_or_decimal(parted: Split, alone: Split, settings: Settings, text: str) -> Split:
    """`1,5` in every line is two columns, or one with decimal commas (or `1,234` with thousands)."""
    number = re.compile(number_or_missing(settings), re.ASCII)
    lines = [record[0].strip() for record in alone.records]
    names = len(parted.records[0]) == parted.width and not number.fullmatch(lines[0])
    if parted.delimiter != "," or names or not all(map(number.fullmatch, lines[1:] or lines)):
        return parted
    if "," in (settings.decimal, settings.thousands):
        return alone
    example = next(line for line in lines if "," in line and number.fullmatch(line))
    raise Uncertain(
        f"{quoted(example)} is two columns parted by `,`, or one number. Set `delimiter` to `,`, or `decimal` or "
        "`thousands`.",
        row=_line(text, example),
        option="delimiter",
    )


def _refuse_spaces(alone: Split, settings: Settings, text: str) -> None:
    if settings.thousands == " ":
        return
    number = re.compile(number_or_missing(settings), re.ASCII)
    lines = [record[0].strip() for record in alone.records[1:] or alone.records]
    several = [line for line in lines if " " in line and all(map(number.fullmatch, line.split()))]
    if several and len(several) * 2 >= len(lines):
        raise Uncertain(
            f"{quoted(several[0])}: columns parted by spaces are not read. Part them by commas or tabs; if the space "
            "groups thousands, set `thousands` to a space.",
            row=_line(text, several[0]),
            option="thousands",
        )


def _refuse_header_like(before: str, comments: str, first: str) -> None:
    """A comment parts into as many fields as the table only by chance; a header always does."""
    signs = [sign for sign in DELIMITERS if sign in first] or [NO_DELIMITER]
    for number, line in enumerate(comments.split("\n"), before.count("\n") + 1):
        if line and any(_fields(line, sign) == _fields(first, sign) for sign in signs):
            raise Uncertain(
                f"Line {number}, {quoted(line)}, begins with `#`: it could be a comment or the header. Remove the "
                "line, or its `#`; or if it is the header, set `header` to true.",
                row=number,
                option="header",
            )


def _fields(line: str, delimiter: str) -> int:
    return len(next(csv.reader([line], delimiter=delimiter)))


def _line(text: str, wanted: str) -> int | None:
    return next((number for number, line in enumerate(text.split("\n"), 1) if line.strip() == wanted), None)
