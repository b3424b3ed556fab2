"""What crosses the reading room's door: one request in, one answer out, both plain JSON."""

from typing import Literal

from pydantic import Field

from workers.contract import Message

Format = Literal["csv", "tsv", "parquet", "npy", "npz", "json"]
ColumnType = Literal["float64", "time", "text"]


class Options(Message):
    """What the bytes do not say and the sender does. Kept as sent; `options.settle` says what they mean."""

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    header: bool | str | None = None
    skip_rows: int | str | None = None
    encoding: str | None = None
    missing: str | None = None
    text: str | None = None
    time_column: str | int | None = None
    time_format: str | None = None


class ReadRequest(Message):
    """One uploaded file, what its sender said of it, where the columns go, and how much reading it may cost."""

    path: str
    folder: str
    media_type: str | None = None
    content_encoding: str | None = None
    file_name: str | None = None
    options: Options = Options()
    max_memory_bytes: int = Field(gt=0)
    max_unpacked_bytes: int = Field(gt=0)
    max_cpu_seconds: int = Field(gt=0)
    max_columns: int = Field(gt=0)


class Column(Message):
    """One column as stored. `min` and `max` are over finite values; null for text, times and where there is none."""

    name: str
    type: ColumnType
    missing: int
    infinite: int = 0
    min: float | None = None
    max: float | None = None


class Table(Message):
    """A file that was read. Column i of type float64 is `columns/<i>.npy`, its gaps `columns/<i>.gaps`.

    first_time, last_time: of the first and the last row, in microseconds since 1970. reading: what was settled of how
    the file is written, by the names of the options. notes: what its sender may want to look at.
    """

    format: Format
    rows: int
    columns: list[Column]
    time_column: str | None = None
    first_time: int | None = None
    last_time: int | None = None
    reading: dict[str, str | int | bool] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class Complaint(Message):
    """A file that was refused: what happened, with which value, where, and which option would settle it."""

    detail: str
    row: int | None = None
    column: str | int | None = None
    option: str | None = None


class Answer(Message):
    """Exactly one of the two."""

    ok: Table | None = None
    error: Complaint | None = None

    def to_json(self) -> str:
        """Strict JSON with the one key that applies."""
        return self.model_dump_json(include={"ok"} if self.ok else {"error"})
