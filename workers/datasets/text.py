"""Text as uploaded becomes text as we read it: UTF-8, one kind of line end, no blank tail; and lines found again."""

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from workers.datasets.refusals import Contradiction, Refused, Uncertain, Unfit, quoted
from workers.datasets.unpacking import CHUNK_BYTES, Budget

BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SPACES_ALONE: Final = re.compile(r"^ +$", re.MULTILINE)

csv.field_size_limit(sys.maxsize)  # Python's own limit of 128 KiB would refuse what Arrow reads


def normalise(source: Path, target: Path, encoding: str | None, budget: Budget) -> str:
    """Write `source` to `target` as UTF-8 with `\\n` line ends, lines of spaces emptied, blank lines at the end cut.

    Returns the encoding it was in. encoding: what the sender said, or None to trust a byte order mark and otherwise require UTF-8.
    Raises Uncertain with the line where the bytes are not of the encoding; Unfit where the text holds NUL or is empty.
    """
    with source.open("rb") as file, target.open("wb") as out:
        mark, encoding_used = _encoding_of(file.read(4), encoding)
        file.seek(mark)
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding_used)(), translate=True)
        lines = 0
        while True:
            chunk = file.read(CHUNK_BYTES)
            budget.spend(len(chunk))
            held_return = bool(decoder.getstate()[1] & 1)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as wrong:
                before = "\r" * held_return + bytes(wrong.object[: wrong.start]).decode(encoding_used, "ignore")
                raise _not_of(encoding, wrong, lines + len(re.findall(r"\r\n?|\n", before)) + 1) from None
            if "\x00" in text:
                raise _holds_nul(encoding, lines + text.count("\n", 0, text.index("\x00")) + 1)
            lines += text.count("\n")
            # Only at a chunk's edge may this take spaces off a cell, where they would be trimmed anyway.
            out.write((SPACES_ALONE.sub("", text) if " " in text else text).encode())
            if not chunk:
                break
    _cut_blank_tail(target)
    if not target.stat().st_size:
        raise Unfit("The file is empty. Send one with at least one row of numbers.")
    return encoding_used


class Lines:
    """The records of normalised text, found again when a refusal has to name a line."""

    def __init__(self, path: Path, delimiter: str, start: int, lines_before: int, keep_blank: bool) -> None:
        self.path, self.delimiter, self.start = path, delimiter, start
        self.lines_before, self.keep_blank = lines_before, keep_blank

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Each record: the line it begins in, counted from 1 as editors do, and its fields."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            reader = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""), delimiter=self.delimiter)
            line = self.lines_before + 1
            for fields in reader:
                if fields or self.keep_blank:
                    yield line, fields
                line = self.lines_before + reader.line_num + 1

    def line(self, record: int) -> int | None:
        """The line in which record number `record` (from 0) begins."""
        return next((line for number, (line, _) in enumerate(self) if number == record), None)


def _encoding_of(head: bytes, said: str | None) -> tuple[int, str]:
    """How many bytes the byte order mark takes, and the encoding."""
    for mark, name in BOMS:
        if head.startswith(mark):
            if said not in (None, name, name.removesuffix("-le").removesuffix("-be")):
                raise Contradiction(
                    f"The text is said to be {said}, but begins with the byte order mark of {name}. "
                    "Correct `encoding`, or leave it out.",
                    row=1,
                    option="encoding",
                )
            return len(mark), name
    if said in ("utf-16", "utf-32"):
        raise Uncertain(
            f"The text is said to be {said}, but does not begin with its byte order mark. Set `encoding` to {said}-le or "
            f"{said}-be.",
            row=1,
            option="encoding",
        )
    return 0, said or "utf-8"


def _not_of(said: str | None, wrong: UnicodeDecodeError, line: int) -> Refused:
    byte = f"0x{wrong.object[wrong.start]:02X}"
    if said is None:
        advice = "Which encoding it is cannot be told from the bytes: set `encoding`, for example to cp1252 or latin-1."
        return Uncertain(
            f"Line {line} holds the byte {byte}, so the text is not UTF-8. {advice}", row=line, option="encoding"
        )
    return Uncertain(
        f"Line {line} holds the byte {byte}, which is not {said}. Correct `encoding`.", row=line, option="encoding"
    )


def _holds_nul(said: str | None, line: int) -> Refused:
    if said is None:
        advice = "If the text is UTF-16, set `encoding` to utf-16-le or utf-16-be; otherwise remove it."
        return Uncertain(f"Line {line} holds a NUL byte. {advice}", row=line, option="encoding")
    return Unfit(f"Line {line} holds a NUL character. Remove it, or correct `encoding` ({quoted(said)}).", row=line)


def _cut_blank_tail(path: Path) -> None:
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - CHUNK_BYTES)
            file.seek(begin)
            kept = len(file.read(end - begin).rstrip(b"\n "))
            end = begin + kept
            if kept:
                break
        file.truncate(end)
