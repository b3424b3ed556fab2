"""The records of a table of text, in batches of strings, each with its number; and what is wrong where they break."""

from collections.abc import Iterator
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

    def _explained(self, wrong: Exception) -> Refused:
        """Arrow counts rows its own way; the line at fault is found again."""
        for line, fields in self.lines:
            if len(fields) not in (self.dialect.width, 0):
                return Unfit(
                    f"Line {line} is of another width: expected {self.dialect.width} fields, found {len(fields)}. "
                    "Correct the line, remove it if it is a title or a note, or set `delimiter`.",
                    row=line,
                    option="delimiter",
                )
        return Damaged(f"The text cannot be taken apart into records: {str(wrong)[:200]}.")
