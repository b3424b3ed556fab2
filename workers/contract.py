"""What crosses the border between the control plane and the compute plane: plain data, no numpy, no database.

Messages are pydantic models; both sides validate them, so a version skew shows itself as an error with a name.
"""

import asyncio
import importlib
import json
import math
import reprlib
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    model_validator,
)

VERSION = "2"
"""Raised with every change of a message; a worker of another version is refused when it joins."""


def call_by_name(dotted: str, *arguments: Any) -> Any:
    """Call `package.module:function`. An engine ships this one function by reference, so that the control plane
    can name what a worker runs without importing it."""
    module, _, name = dotted.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function(*arguments)


async def call_in_thread(dotted: str, *arguments: Any) -> Any:
    """The same beside the event loop of a worker, which must go on meanwhile."""
    return await asyncio.to_thread(call_by_name, dotted, *arguments)


class Message(BaseModel):
    """A value of the border: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# ---- scalars as people send them -------------------------------------------------------------------------------


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a whole number, not {_as_sent(value)}")
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"must be a whole number, not {_as_sent(value)}")
        return int(value)
    return value


def _as_sent(value: object) -> str:
    """A value in JSON's own words, shortened."""
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


WholeNumber = Annotated[int, BeforeValidator(_whole), Field(strict=True)]
"""A JSON number without a fraction: 50 and 50.0, never "50", true or 50.5."""


def _sample(value: object) -> float:
    match value:
        case None:
            return math.nan
        case "inf":
            return math.inf
        case "-inf":
            return -math.inf
        case bool():
            raise ValueError(f'must be a number, null, "inf" or "-inf", not {value!r}')
        case int() | float():
            try:
                return float(value)
            except OverflowError:
                raise ValueError("must be a number that a double can hold, which ends at about 1.8e308") from None
    raise ValueError(f'must be a number, null, "inf" or "-inf", not {reprlib.repr(value)}')


def _sample_as_json(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "inf" if value > 0 else "-inf"


Sample = Annotated[
    float,
    BeforeValidator(_sample),
    PlainSerializer(_sample_as_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}, {"enum": ["inf", "-inf"]}]}),
]
"""One value of a series: `null` is NaN, and "inf" and "-inf" are what they say."""


def plain_text(value: str) -> str:
    """Refuse what no database or file name can hold: NUL and lone surrogates."""
    if "\x00" in value or any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise ValueError("must not contain NUL or unpaired surrogate characters")
    return value


Text = Annotated[str, AfterValidator(plain_text)]

# ---- what users ask for ----------------------------------------------------------------------------------------

MAX_INLINE_VALUES = 100_000


class SeriesReference(Message):
    """A series: a stretch of a dataset's column, or values sent along."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dataset": "ds_…"}, {"values": [1.0, 2.5, None]}]})

    dataset: Text | None = Field(None, max_length=64, description="A dataset's id.")
    column: Text | Annotated[WholeNumber, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="Name or number of the column; may be left out where the dataset has one numeric column."
    )
    start: Annotated[WholeNumber, Field(ge=0, le=2**53)] = Field(0, description="First row, counted from 0.")
    stop: Annotated[WholeNumber, Field(ge=0, le=2**53)] | None = Field(None, description="Row after the last one.")
    # A hundred thousand wrong values are one mistake, and as many errors would take seconds to collect.
    values: Annotated[list[Sample], Field(fail_fast=True)] | None = Field(
        None,
        max_length=MAX_INLINE_VALUES,
        description='The values themselves; null is NaN, "inf" and "-inf" are allowed.',
    )

    @model_validator(mode="after")
    def one_source(self) -> "SeriesReference":
        if (self.dataset is None) == (self.values is None):
            raise ValueError("name either a `dataset` or `values`, not both and not neither")
        if self.values is not None and (self.column is not None or self.start != 0 or self.stop is not None):
            raise ValueError("`column`, `start` and `stop` select from a dataset; with `values`, send just the values")
        return self


class Columns(Message):
    """Several columns of one dataset, as series of equal length."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dataset": "ds_…", "columns": ["a", "b"]}]})

    dataset: Text = Field(max_length=64, description="A dataset's id.")
    columns: list[Text | Annotated[WholeNumber, Field(ge=0, le=1_000_000)]] | None = Field(
        None, min_length=1, max_length=10_000, description="Names or numbers; all numeric columns where left out."
    )
    start: Annotated[WholeNumber, Field(ge=0, le=2**53)] = Field(0, description="First row, counted from 0.")
    stop: Annotated[WholeNumber, Field(ge=0, le=2**53)] | None = Field(None, description="Row after the last one.")


# The least values are in the schema for readers; `app.jobs.checks` refuses less, with a sentence that helps.
Window = Annotated[
    WholeNumber, Field(description="Window length in samples, at least 3.", json_schema_extra={"minimum": 3})
]
Normalize = Annotated[bool, Field(strict=True, description="z-normalised distance, or the p-norm when false.")]


def _exponent(value: object) -> object:
    if value in ("inf", math.inf):
        raise ValueError("must be a finite number: the Chebyshev distance, p infinite, is not supported")
    return value


PNorm = Annotated[
    float,
    BeforeValidator(_exponent),
    Field(
        strict=True,
        allow_inf_nan=False,
        description="The p of the p-norm, at least 1; used only with `normalize: false`.",
        json_schema_extra={"minimum": 1},
    ),
]
Several = Annotated[list[SeriesReference], Field(min_length=1, max_length=10_000, fail_fast=True)]


def _several(sent: object) -> object:
    if isinstance(sent, dict) and ("values" in sent or "column" in sent):
        raise ValueError(
            "must be a list of series, `[{…}, {…}]`, or one object with `dataset` and `columns`; this is one series"
        )
    return sent


# Told apart by what was sent, so that a fault in a list is not told as a missing dataset too.
SeveralOrColumns = Annotated[
    Annotated[Several, Tag("list")] | Annotated[Columns, Tag("Columns")],
    Discriminator(lambda sent: "list" if isinstance(sent, list) else "Columns"),
    BeforeValidator(_several),
]


class MatrixProfileParams(Message):
    """A matrix profile: each window's nearest neighbour, in the same series or, with `against`, in another."""

    series: SeriesReference
    window: Window = Field(examples=[50])
    against: SeriesReference | None = Field(None, description="The other series of an AB-join.")
    normalize: Normalize = True
    p: PNorm = 2.0
    k: WholeNumber = Field(1, description="How many neighbours of each window.", json_schema_extra={"minimum": 1})


class MultidimensionalProfileParams(Message):
    """A multidimensional matrix profile: row i has each window's nearest neighbour over its best i+1 dimensions."""

    series: SeveralOrColumns = Field(description="The dimensions: series of equal length, or columns of one dataset.")
    window: Window = Field(examples=[50])
    include: list[Annotated[WholeNumber, Field(ge=0)]] | None = Field(
        None, max_length=10_000, description="Dimensions, counted from 0, that every row must contain."
    )
    discords: bool = Field(
        False, strict=True, description="Order dimensions by the largest distance instead of the smallest."
    )
    normalize: Normalize = True
    p: PNorm = 2.0


class MpdistParams(Message):
    """MPdist: how alike two series are, as the k-th smallest of the values of both AB-joins between them."""

    a: SeriesReference
    b: SeriesReference
    window: Window = Field(examples=[50])
    percentage: Annotated[float, Field(strict=True, allow_inf_nan=False)] = Field(
        0.05,
        description="Which value of the sorted joins, as a share of both lengths: above 0, at most 1.",
        json_schema_extra={"exclusiveMinimum": 0, "maximum": 1},
    )
    k: WholeNumber | None = Field(
        None,
        description="Which value instead of `percentage`, counted from 0.",
        json_schema_extra={"minimum": 0},
    )
    normalize: Normalize = True
    p: PNorm = 2.0


class ConsensusMotifParams(Message):
    """A consensus motif: the window whose nearest neighbours in all other series are, at worst, the nearest."""

    series: SeveralOrColumns = Field(description="Two or more series, of any lengths, or columns of one dataset.")
    window: Window = Field(examples=[50])
    normalize: Normalize = True
    p: PNorm = 2.0


class PanProfileParams(Message):
    """A pan matrix profile: one matrix profile for each window from `min_window` to `max_window`."""

    series: SeriesReference
    min_window: Window = 3
    max_window: Window | None = Field(
        None, description="The longest window; where left out, the longest for which the profile still says something."
    )
    step: WholeNumber = Field(1, description="From one window to the next.", json_schema_extra={"minimum": 1})
    percentage: Annotated[float, Field(strict=True, allow_inf_nan=False)] = Field(
        1.0,
        description="Share of the distances to compute, above 0; less than 1 is an approximation from above.",
        json_schema_extra={"exclusiveMinimum": 0, "maximum": 1},
    )
    pre_scrump: bool = Field(False, strict=True, description="Begin an approximation with PreSCRIMP.")
    normalize: Normalize = True
    p: PNorm = 2.0


class ProbeParams(Message):
    """Probes, run again on every worker. Made by `POST /capabilities/probes`."""

    check: Literal["all", "cpu", "dask", "ray", "cuda"] = "all"
    require_cuda: bool = Field(False, strict=True, description="Fail unless some worker executed a GPU function.")


# ---- what a worker is told -------------------------------------------------------------------------------------


class Source(Message):
    """Where a worker finds one series: a stored float64 column to memory-map, or the values themselves."""

    name: str
    path: str | None = None
    time_path: str | None = None
    start: int = 0
    stop: int | None = None
    values: list[Sample] | None = None


class Task(Message):
    """One attempt's work, as the granted claim hands it to the driver."""

    attempt: str
    job: str
    kind: str
    params: dict[str, Any]
    """What was asked, without the series."""
    sources: dict[str, list[Source]]
    """The series by the names of their parameters: `series`, `against`, `a`, `b`."""
    plan: dict[str, Any]
    devices: list[int] = []
    """CUDA indices on its worker that are the attempt's alone."""
    folder: str


# ---- what a worker reports -------------------------------------------------------------------------------------


class EventType(StrEnum):
    STATE = "state"
    PHASE = "phase"
    PROGRESS = "progress"
    LOG = "log"
    METRIC = "metric"
    ARTIFACT = "artifact"
    WARNING = "warning"


class ReportedEvent(Message):
    """Something that happened in an attempt. `number` counts up within the attempt, so a report sent twice counts once."""

    attempt: str
    claim: str
    number: int
    at: AwareDatetime
    type: EventType
    data: dict[str, Any]


def _below(name: str) -> str:
    """A relative path that stays below where it starts."""
    parts = name.split("/")
    if len(name) > 255 or "\x00" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no name of an artifact")
    return name


class Artifact(Message):
    """A file an attempt leaves behind; `name` is its path below the attempt's folder."""

    name: Annotated[str, AfterValidator(_below)]
    bytes: int
    sha256: str
    media_type: str


class Outcome(Message):
    """How an attempt ended. Written as a file first, then delivered until the server acknowledges it."""

    attempt: str
    claim: str
    end: Literal["succeeded", "failed", "stopped", "lost"]
    """`stopped`: it was asked to, or its worker leaves. `lost`: the worker could not keep it going; try it again."""
    error: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None
    artifacts: list[Artifact] = []


class Running(Message):
    """One line of a worker's heartbeat: this attempt runs here, under this claim."""

    attempt: str
    claim: str


class Report(Message):
    """What an agent posts once a second, and at once when something that matters happened."""

    running: list[Running]
    """Attempts whose driver is here."""
    pieces: list[Running] = []
    """Attempts of which a piece is computed here; their driver may be on another worker."""
    events: list[ReportedEvent] = []
    outcomes: list[Outcome] = []


class ReportAnswer(Message):
    """What the server says to a report: which outcomes are safe with it, and what must stop."""

    acknowledged: list[str]
    stop: list[str]
    peers: list[str] | None = None
    """Addresses of the workers of the same engine that are up, as the server sees it: pieces go to no others."""


class Claim(Message):
    """An execution asks to be the one that runs its attempt; `nonce` is its own, made fresh."""

    nonce: str
    worker: str


class Probe(Message):
    """One thing a worker tried, what it proved and when."""

    name: str
    evidence: Literal["absent", "importable", "configured", "simulated", "executed"]
    detail: str
    seconds: float
    at: datetime


class Join(Message):
    """A worker introduces itself, after its probes ran."""

    version: str = VERSION
    id: str
    engine: str
    address: str
    host: str
    pid: int
    resources: dict[str, Annotated[int, Field(ge=0)]]
    threads: Annotated[int, Field(ge=1)]
    memory_bytes: int
    cpu: dict[str, Any]
    gpus: list[dict[str, Any]]
    versions: dict[str, str]
    probes: list[Probe]
    speed: dict[str, float]
