"""What people get to see of a job."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.jobs.requests import Backend
from app.jobs.states import State
from app.kit.clock import Rfc3339
from workers.training.rules import Resolved


class Fallback(BaseModel):
    wanted: str
    reason: str


class Estimate(BaseModel):
    seconds: float | None = Field(
        description="Of computing, from the speed measured on the workers; null where none was measured."
    )
    peak_bytes: int = Field(description="Memory of the computing process, beyond the interpreter's own.")
    actual_seconds: float | None = Field(None, description="What computing took, once the job has succeeded.")
    ratio: float | None = Field(None, description="Actual to estimated seconds: the error of the estimate.")


class Plan(BaseModel):
    """Where the job runs, with which function, and why not where it was asked to."""

    backend: Backend
    implementation: Literal["tiles", "stumpy", "lightning", "probe"] = Field(
        description="`lightning` of a training job, `probe` of one that probes."
    )
    function: str
    device: str = Field(
        description="`cpu`; `cuda:0` or `cuda:0,1`, or `cuda` where placement picks; `cuda-simulator`, which is a CPU."
    )
    devices: int | list[int] | None = Field(None, description="CUDA devices it needs: how many, or which.")
    workers: int = Field(description="How many workers share it.")
    fallback: Fallback | None
    acceleration_verified: bool = Field(description="Whether it runs on a GPU where a GPU function was executed.")
    estimate: Estimate
    reasons: list[str] = Field(description="One sentence for each choice that was made.")
    warnings: list[str] = Field(description="What will run, but perhaps not as meant.")
    resolved: Resolved | None = Field(
        None, description="Of a training job: what will really run, `auto` and aliases settled."
    )


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
    kind: str = Field(description="As asked for, or `probe`.")
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
    never: str | None = Field(
        None,
        description="Of a waiting job that none of the workers could run even if all were free: what it asks for, and the most that is "
        "there. null where it only waits for room, or where no worker is there at all.",
    )
    rules: list[str]
    jobs_ahead: int
    workers: list[WorkerConsidered]
