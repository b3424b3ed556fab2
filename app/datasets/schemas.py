"""What a dataset looks like on the wire."""

from typing import Literal

from pydantic import BaseModel, Field

from app.kit.clock import Rfc3339

OPTIONS = ("delimiter", "decimal", "thousands", "header", "encoding", "missing", "time_column", "time_format")
"""What the bytes do not say can be said in the query or in a part of the form."""


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
        "application/x-www-form-urlencoded",  # what curl says unasked
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
