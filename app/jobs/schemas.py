"""What a job looks like on the wire: what people send, what they get."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.jobs.states import State
from app.kit.clock import Rfc3339
from workers.contract import MatrixProfileParams, WholeNumber, plain_text

Backend = Literal["cpu", "dask", "ray", "cuda"]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Execution(Request):
    """Where and how to run."""

    backend: Literal["auto"] | Backend = Field(
        "auto", description="`cpu`: one worker; `dask` or `ray`: spread over the cluster; `cuda`: a worker with a GPU."
    )
    implementation: Literal["auto", "tiles", "stumpy"] = Field(
        "auto", description="`tiles`: our own, exact and in pieces; `stumpy`: the library's function."
    )
    devices: (
        Literal["auto"]
        | Annotated[WholeNumber, Field(ge=1, le=1024)]
        | Annotated[list[Annotated[WholeNumber, Field(ge=0, le=1023)]], Field(max_length=1024, fail_fast=True)]
        | None
    ) = Field(None, description="CUDA devices: `auto`, how many, or which indices; only with `backend: cuda`.")
    fallback: Literal["allow", "forbid"] = Field(
        "allow", description="Whether it may run elsewhere when the backend is not there; `forbid` answers 409 instead."
    )

    @model_validator(mode="after")
    def devices_are_cuda(self) -> "Execution":
        if self.devices is not None and self.backend != "cuda":
            raise ValueError(
                f"`devices` picks CUDA devices, but `backend` is {self.backend!r}; leave it out or ask for 'cuda'"
            )
        if self.devices == []:
            raise ValueError("`devices` is an empty list; name at least one index, or leave it out")
        return self


LabelName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9._/-]+$")]
LabelValue = Annotated[str, StringConstraints(max_length=255), AfterValidator(plain_text)]


class JobFields(Request):
    execution: Execution = Field(Execution(), description="Where and how to run; `auto` throughout unless you say so.")
    priority: Annotated[WholeNumber, Field(ge=-100, le=100)] = Field(0, description="Higher runs first.")
    timeout_seconds: Annotated[float, Field(gt=0, le=31_536_000, strict=True, allow_inf_nan=False)] | None = Field(
        None, description="Limit of running time, all attempts together, in seconds."
    )
    max_attempts: Annotated[WholeNumber, Field(ge=1, le=100)] = Field(
        3, description="How often a lost worker may make the job start again; the server's own stops do not count."
    )
    labels: Annotated[dict[LabelName, LabelValue], Field(max_length=64)] = Field(
        {}, description="Names and values of your own, to find jobs by: `GET /jobs?label=name:value`."
    )


class MatrixProfileJob(JobFields):
    kind: Literal["matrix_profile"]
    params: MatrixProfileParams


JobRequest = MatrixProfileJob
"""The union of all kinds' requests, by `kind`."""


class Batch(Request):
    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=1000, fail_fast=True)]


class Fallback(BaseModel):
    wanted: str
    reason: str


class Estimate(BaseModel):
    seconds: float | None = Field(description="From the speed measured on the workers; null where none was measured.")
    peak_bytes: int


class Plan(BaseModel):
    """Where the job runs, with which function, and why not where it was asked to."""

    backend: Backend
    implementation: Literal["tiles", "stumpy"]
    function: str
    device: str
    workers: int
    fallback: Fallback | None
    acceleration_verified: bool
    estimate: Estimate
    reasons: list[str] = Field(description="One sentence for each choice that was made.")
    warnings: list[str] = Field(description="What will run, but perhaps not as meant.")


class Progress(BaseModel):
    fraction: float
    done: int
    total: int
    unit: str | None
    eta_seconds: float | None


class Links(BaseModel):
    self: str
    events: str
    logs: str
    result: str
    cancel: str
    artifacts: str
    plot: str
    explain: str


class JobView(BaseModel):
    """A job as it is now."""

    id: str
    kind: str
    state: State
    phase: str | None
    progress: Progress
    params: dict[str, Any] = Field(
        description="As sent. In a list of jobs, `values` longer than 20 end there, with `values_total` beside them."
    )
    execution: dict[str, Any]
    plan: Plan
    priority: int
    labels: dict[str, str]
    timeout_seconds: float | None
    attempt: int
    max_attempts: int
    retry_of: str | None
    created_at: Rfc3339
    started_at: Rfc3339 | None
    finished_at: Rfc3339 | None
    error: dict[str, Any] | None = Field(description="A problem object, of a failed job.")
    result: dict[str, Any] | None = Field(description="The result's summary, of a succeeded job.")
    links: Links


class JobId(BaseModel):
    id: str


class BatchAnswer(BaseModel):
    jobs: list[JobId]


class EventView(BaseModel):
    """One entry of a job's log; `seq` counts from 1 without a gap."""

    seq: int
    at: Rfc3339
    type: str
    data: dict[str, Any]


class EventPage(BaseModel):
    items: list[EventView]
    next: str | None


class WorkerConsidered(BaseModel):
    id: str
    host: str
    free: dict[str, int]
    verdict: str


class Explanation(BaseModel):
    """Why a job waits, or why it ran where it did."""

    state: State
    summary: str
    rules: list[str]
    jobs_ahead: int
    workers: list[WorkerConsidered]
