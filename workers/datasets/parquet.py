"""Parquet: typed columns, streamed row group by row group."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from workers.datasets.contract import Format, ReadRequest
from workers.datasets.options import Settings
from workers.datasets.refusals import Damaged, Refused
from workers.datasets.source import Batch, checked
from workers.datasets.timecolumn import Field
from workers.datasets.unpacking import Budget

BATCH_ROWS: Final = 65_536
BROKEN: Final = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, UnicodeError)
"""What Arrow raises over bytes that are not as they should be (ArrowMemoryError apart, which is about us)."""


class ParquetTable:
    """A Parquet file, as a source of columns. Its footer's claims are checked before anything is read."""

    format: Format = "parquet"
    written: Mapping[str, str | int | bool] = {}

    def __init__(self, path: Path, request: ReadRequest, settings: Settings) -> None:
        self.path, self.max_bytes = path, request.max_unpacked_bytes
        try:
            with pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
                schema, self.rows = file.schema_arrow, file.metadata.num_rows
                groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
                consistent = sum(group.num_rows for group in groups) == self.rows >= 0
                claimed = sum(group.total_byte_size for group in groups)
        except MemoryError:
            raise
        except BROKEN as wrong:
            raise _broken(wrong) from None
        if not consistent:
            raise _broken("its footer counts rows in two ways")
        Budget(self.max_bytes).spend(max(0, claimed))
        self.fields = [Field(field.name, _plain(field.type)) for field in schema]
        checked(self.fields, self.rows, request.max_columns, self.max_bytes)

    def place(self, record: int) -> int:
        """The row, counted from 1."""
        return record + 1

    def batches(self, time: int | None) -> Iterator[Batch]:
        """Each column's values in its own type; dictionaries unfolded, booleans as text."""
        first_record, budget = 0, Budget(self.max_bytes * 2)  # Arrow's own layout is wider than Parquet's claims
        try:
            with pq.ParquetFile(self.path, memory_map=False, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                    budget.spend(batch.nbytes)
                    for index, field in enumerate(self.fields):
                        values = batch.column(index).cast(field.type)
                        values.validate(full=True)  # text that is no UTF-8 would trip us up later
                        yield index, first_record, values
                    first_record += batch.num_rows
        except (MemoryError, Refused):
            raise
        except BROKEN as wrong:
            raise _broken(wrong) from None
        if first_record != self.rows:
            raise _broken(f"its footer promises {self.rows:,} rows and {first_record:,} are there")


def _plain(type: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(type):
        return _plain(type.value_type)
    return pa.string() if pt.is_large_string(type) or pt.is_string_view(type) or pt.is_boolean(type) else type


def _broken(why: object) -> Damaged:
    return Damaged(f"The Parquet file is cut short or broken ({str(why)[:200]}). Write and send it again.")
