"""What users ask for: the parameters of every kind of job."""

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from workers.contract.scalars import Message, Sample, Text, WholeNumber

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


Seconds = Annotated[float, Field(strict=True, gt=0, le=31_536_000, allow_inf_nan=False)]


class TrainingParams(Message):
    """A training job: a Lightning CLI configuration under Trainer, or a function under Fabric."""

    mode: Literal["trainer", "fabric"] = Field(
        "trainer",
        description="`trainer`: a LightningModule under `Trainer`; `fabric`: a function `train(fabric, **kwargs)`.",
    )
    stage: Literal["fit", "validate", "test", "predict"] = Field("fit", description="What the Trainer does.")
    config: dict[str, Any] = Field(
        description="With `trainer`, a Lightning CLI configuration, key for key; with `fabric`, `{fabric, function: {call_path, kwargs}}`. "
        "A series reference, or `{dataset}`, anywhere inside `init_args` or `kwargs` becomes a local path on the worker."
    )
    source: Text | None = Field(None, max_length=64, description="A package uploaded with `POST /sources`.")
    on_nonfinite_loss: Literal["fail", "continue"] = Field(
        "fail",
        description="What a loss that is NaN or infinite does, beside a warning: end the job as failed, or nothing.",
    )
    stall_seconds: Seconds = Field(
        600.0, description="Without a step of any stage for so long, the job fails as stalled."
    )
    start_seconds: Seconds = Field(
        300.0, description="Without a first step for so long, the job fails as hung at its start."
    )
    checkpoint_seconds: Seconds = Field(
        60.0, description="How often `last.ckpt` is written within an epoch; it is written at the end of each as well."
    )


class ProbeParams(Message):
    """Probes, run again on every worker. Made by `POST /capabilities/probes`."""

    check: Literal["all", "cpu", "dask", "ray", "cuda", "training"] = "all"
    require_cuda: bool = Field(False, strict=True, description="Fail unless some worker executed a GPU function.")
