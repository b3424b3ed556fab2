"""What a dataset looks like on the wire."""

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from app.kit.clock import Rfc3339

OPTIONS: Final = {
    "delimiter": "What separates cells, such as `;`.",
    "decimal": "The decimal mark, `.` or `,`.",
    "thousands": "The mark between groups of digits.",
    "header": "Whether the first row names the columns.",
    "skip_rows": "How many lines there are before the header or the first row, such as a title.",
    "encoding": "The text's encoding, such as `latin-1`.",
    "missing": "Comma-separated marks of a missing value. In the query, `missing=` makes blank lines of one column missing.",
    "text": "Comma-separated names of columns to be read as text, whatever is in them.",
    "time_column": "The column that holds the time; `date,time` for two that hold it together. In the query, "
    "`time_column=` says that there is none.",
    "time_format": "How the time is written, such as `%d.%m.%Y %H:%M`, or `unix_s` for seconds since 1970.",
}
"""What the bytes do not say can be said in the query or in a part of the form, where an empty part says nothing."""


MEDIA_TYPES = (
    "text/csv",
    "text/tab-separated-values",
    "application/vnd.apache.parquet",
    "application/x-npy",
    "application/x-npz",
    "application/json",
)
"""What a raw body can say it is."""

OTHER_MEDIA_TYPES = frozenset(
    (
        *("", "application/octet-stream", "binary/octet-stream", "text/plain"),
        *("application/gzip", "application/x-gzip", "application/zip"),
        *("text/x-csv", "application/csv", "text/comma-separated-values", "application/vnd.ms-excel"),
        *("text/tsv", "application/parquet", "application/x-parquet", "text/json"),
    )
)
"""Other names of these, and what says nothing: then the file's name and its bytes decide."""


class ColumnView(BaseModel):
    name: str
    type: Literal["float64", "time", "text"]
    missing: int
    infinite: int
    min: float | None
    max: float | None


class DatasetView(BaseModel):
    """An uploaded file and what was read in it."""

    id: str
    name: str
    format: str
    bytes: int
    sha256: str
    rows: int
    columns: list[ColumnView]
    time_column: str | None
    first_time: Rfc3339 | None = Field(description="Time of the first row, where there is a time column.")
    last_time: Rfc3339 | None = Field(description="Time of the last row.")
    reading: dict[str, Any] = Field(
        description="How the file was read, as far as it applies: `delimiter`, `decimal`, `thousands`, `header`, "
        "`encoding`, `lines_skipped`, `time_format`, and `time_column` where two columns are the time."
    )
    notes: list[str] = Field(description="What is worth a look, such as times that run backwards.")
    created_at: Rfc3339


class SeriesView(BaseModel):
    """Values of one column; with `points`, each stretch is drawn by its smallest and its largest value."""

    column: str
    start: int
    stop: int
    downsampled: bool
    rows: list[int] = Field(description="Row of each value.")
    values: list[float | None] = Field(description="null where the value is missing or infinite.")
    at: list[Rfc3339] | None = Field(description="Time of each value, where the dataset has a time column.")
