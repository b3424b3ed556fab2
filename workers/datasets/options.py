"""What the sender's options mean. An option that is set is binding, so one that means nothing is refused here."""

import codecs
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from workers.datasets.contract import Options
from workers.datasets.refusals import BadOption, quoted

T = TypeVar("T")

DELIMITERS: Final = {",": ",", ";": ";", "\t": "\t", "|": "|"}
DELIMITER_NAMES: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}
DECIMALS: Final = {".": ".", ",": ","}
THOUSANDS: Final = {"": "", "none": "", ",": ",", ".": ".", "'": "'", "’": "'", " ": " ", "\xa0": " ", "\u202f": " "}
HEADER: Final = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}

MISSING: Final = frozenset({"", "NA", "N/A", "#N/A", "NaN", "null", "None", "-", "--", "?"}).union(
    form(word) for word in ("na", "n/a", "#n/a", "nan", "null", "none") for form in (str.lower, str.upper, str.title)
)
"""Cells that say "no value" in the files people have. The sender's markers come on top of these."""

ENCODINGS: Final = frozenset(
    codecs.lookup(name).name
    for name in (
        *("utf-8", "ascii", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "koi8-r", "koi8-u"),
        *(f"iso8859-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
        *(f"cp{n}" for n in (437, 850, 852, 866, 874, 932, 936, 949, 950, *range(1250, 1259))),
        *("shift_jis", "euc_jp", "euc_kr", "gb2312", "gbk", "gb18030", "big5", "mac-roman"),
    )
)
"""Encodings of text. Python knows more codecs; the others are no encodings, or slow on purpose-made input."""

Name = Literal[
    "delimiter",
    "decimal",
    "thousands",
    "header",
    "skip_rows",
    "encoding",
    "missing",
    "text",
    "time_column",
    "time_format",
]
ABOUT_TEXT: Final[tuple[Name, ...]] = ("delimiter", "decimal", "thousands", "header")


@dataclass(frozen=True)
class Settings:
    """The options, settled. None where the sender left it to us; `thousands` "" says that there is no such sign."""

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    header: bool | None = None
    skip_rows: int = 0
    encoding: str | None = None
    missing: frozenset[str] = MISSING
    missing_numbers: tuple[float, ...] = ()
    blank_is_missing: bool = False
    text: frozenset[str] = frozenset()
    time_column: str | None = None
    time_format: str | None = None
    given: Collection[str] = field(default=())


def settle(options: Options, charset: str | None = None) -> Settings:
    """Say what the options mean, or raise BadOption naming the one that means nothing.

    charset: the one the media type names; the option `encoding` counts before it.
    """
    decimal = _one_of("decimal", options.decimal, DECIMALS)
    thousands = _one_of("thousands", options.thousands, THOUSANDS)
    if thousands and thousands == decimal:
        raise BadOption(
            f"`thousands` and `decimal` are both {quoted(thousands)}; they must differ.", option="thousands"
        )
    own = [marker.strip() for marker in options.missing.split(",")] if options.missing is not None else []
    return Settings(
        delimiter=_one_of("delimiter", options.delimiter, DELIMITERS | DELIMITER_NAMES),
        decimal=decimal,
        thousands=thousands,
        header=options.header if isinstance(options.header, bool) else _one_of("header", options.header, HEADER),
        skip_rows=_count("skip_rows", options.skip_rows),
        encoding=_encoding(charset if options.encoding is None else options.encoding),
        missing=MISSING.union(own),
        missing_numbers=tuple(number for number in map(_number, own) if number is not None),
        blank_is_missing="" in own,
        text=frozenset(name.strip() for name in (options.text or "").split(",")) - {""},
        time_column=None if options.time_column is None else str(options.time_column),
        time_format=options.time_format,
        given=tuple(name for name in Options.model_fields if getattr(options, name) is not None),
    )


def _one_of(option: Name, value: str | None, meanings: dict[str, T]) -> T | None:
    if value is None:
        return None
    if value not in meanings and value.lower() not in meanings:
        by_meaning = {meaning: name for name, meaning in reversed(meanings.items()) if name}
        known = ", ".join(quoted(name) for name in reversed(by_meaning.values()))
        raise BadOption(f"`{option}` cannot be {quoted(value)}; it is one of {known}.", option=option)
    return meanings[value] if value in meanings else meanings[value.lower()]


def _count(option: Name, value: int | str | None) -> int:
    text = str(value or 0).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadOption(f"`{option}` cannot be {quoted(text)}; it is a number of lines, such as 2.", option=option)
    return int(text)


def _encoding(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        name = codecs.lookup(value).name.replace("utf-8-sig", "utf-8")
    except (LookupError, ValueError):
        name = ""
    if name not in ENCODINGS:
        raise BadOption(
            f"`encoding` cannot be {quoted(value)}; it names how text is written: utf-8, cp1252, utf-16-le, …",
            option="encoding",
        )
    return name


def _number(marker: str) -> float | None:
    try:
        return float(marker)
    except ValueError:
        return None
