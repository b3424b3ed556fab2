"""Cells of text, looked at by the column: which match, which comes first, which say "no value"."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cell:
    """A cell remembered to be named: its record, counted from 0, and what stands there ("" where missing)."""

    record: int
    text: str


def cleaned(cells: pa.Array, markers: pa.Array) -> pa.Array:
    """Strings trimmed of spaces and of a pair of quotes left after them; null where a marker says "no value"."""
    trimmed = pc.utf8_trim_whitespace(cells)
    if pc.any(pc.starts_with(trimmed, '"')).as_py():
        unquoted = pc.replace_substring_regex(trimmed, r'(?s)\A"(.*)"\z', r"\1")
        trimmed = pc.utf8_trim_whitespace(unquoted)
    return pc.if_else(pc.is_in(trimmed, value_set=markers), None, trimmed)


def matching(cells: pa.Array, pattern: str) -> Bools:
    """bool (n,): which cells match wholly; null does not."""
    return as_bools(pc.match_substring_regex(cells, rf"\A(?:{pattern})\z"))


def containing(cells: pa.Array, sign: str) -> Bools:
    """bool (n,): which cells contain the sign; null does not."""
    return as_bools(pc.match_substring(cells, sign))


def as_bools(array: pa.Array) -> Bools:
    """bool (n,); null is false."""
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def first_few(known: list[Cell], cells: pa.Array, where: Bools, first_record: int, at_most: int = 3) -> list[Cell]:
    """The known cells and the next of `cells` that `where` marks, as many as a sentence can name, in the file's order."""
    room = at_most - len(known) if where.any() else 0
    indices = where.nonzero()[0].tolist()[:at_most] if where.any() else []
    found = [Cell(first_record + index, cells[index].as_py() or "") for index in indices]
    if known and found and found[0].record < known[0].record:
        return (found + known)[:at_most]
    return known + found[:room]


def earlier(known: Cell | None, cells: pa.Array, where: Bools, first_record: int) -> Cell | None:
    """The earlier of a known cell and the first of `cells` that `where` marks."""
    if not where.any():
        return known
    index = int(where.argmax())
    found = Cell(first_record + index, cells[index].as_py() or "")
    return found if known is None or found.record < known.record else known
