"""The records of a table of text, in batches of strings, each with its number; and what is wrong where they break."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv

from workers.datasets.dialect import Dialect
from workers.datasets.refusals import Damaged, Refused, Unfit
from workers.datasets.text import Lines

BLOCK_BYTES: Final = 8 << 20
"""How much text is parsed at a time; a record must fit into it. Wide tables get up to eight times as much, as every
column of a block costs a millisecond, however few its cells."""


@dataclass
class Width:
    """The records that have one number of fields: where the first of them is, and how many there are."""

    line: int
    fields: list[str]
    records: int = 0


class Records:
    """All records of normalised text. May be read more than once."""

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self.lines = Lines(path, dialect.delimiter, dialect.start, dialect.lines_before, dialect.one_column)

    def batches(self, skip: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(number of the first record, batch of strings); the first `skip` records are left out.

        Raises Unfit with the line of a record that has another number of fields than the rest, Damaged with that of a
        quote which is never closed: Arrow takes all that follows it for one cell.
        """
        number, last_cell = 0, ""
        with pa.OSFile(str(self.path)) as file:
            file.seek(self.dialect.start)
            try:
                for batch in self._open(file):
                    left_out = min(batch.num_rows, max(0, skip - number))
                    if left_out < batch.num_rows:
                        yield number + left_out, batch.slice(left_out)
                    number += batch.num_rows
                    last_cell = batch.column(-1)[-1].as_py()
            except pa.ArrowInvalid as wrong:
                raise self._explained(wrong) from None
            if "\n" in last_cell and file.read_at(1, file.size() - 1) != b'"':
                line = self.lines.line(number - 1)
                raise Damaged(f"In line {line} begins a cell with a quote that is never closed. Close it.", row=line)

    def _open(self, file: pa.NativeFile) -> pa_csv.CSVStreamingReader:
        names = [str(number) for number in range(self.dialect.width)]
        block_bytes = BLOCK_BYTES * min(8, 1 + self.dialect.width // 64)
        return pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=block_bytes, column_names=names),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.dialect.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=not self.dialect.one_column,
            ),
            convert_options=pa_csv.ConvertOptions(
                check_utf8=False, column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )

    def _ragged(self, seen: dict[int, Width]) -> Refused:
        """Blame the first line that is unlike most."""
        usual = max(seen, key=lambda width: (seen[width].records, width == self.dialect.width))
        found = min((width for width in seen if width != usual), key=lambda width: seen[width].line)
        odd, others = seen[found], sum(width.records for width in seen.values()) - seen[usual].records - 1
        above = self.dialect.lines_before < odd.line < seen[usual].line
        more = f" (and {others:,} more)" if others else ""
        advice, option = "Correct the line, remove it if it is a title or a note, or set `delimiter`.", "delimiter"
        if above and found < usual:
            advice = f"If it is a title or a note, set `skip_rows` to {seen[usual].line - 1}; if it is the header, name every column."
            option = "skip_rows"
        wider = odd if found > usual else seen[usual]
        if self.dialect.delimiter == "," and abs(found - usual) < max(found, usual) and _split_numbers(wider.fields):
            advice += " If commas are decimal marks or group thousands in its numbers, put those in quotes or part the columns by `;`."
        return Unfit(
            f"Line {odd.line} is of another width than most{more}: expected {usual} fields, found {found}. {advice}",
            row=odd.line,
            option=option,
        )

    def _explained(self, wrong: Exception) -> Refused:
        """Arrow counts rows its own way; the line at fault is found again."""
        seen: dict[int, Width] = {}
        for line, fields in self.lines:
            if fields:
                width = seen.setdefault(len(fields), Width(line, fields))
                width.records += 1
        if len(seen) > 1:
            return self._ragged(seen)
        return Damaged(f"The text cannot be taken apart into records: {str(wrong)[:200]}.")


def _split_numbers(fields: list[str]) -> bool:
    """Whether two cells beside each other could be one number that a comma was taken to part."""
    return any(re.fullmatch(r"[-+]?\d+,\d+", f"{a.strip()},{b.strip()}") for a, b in pairwise(fields))
