"""What people send: one request for each kind of job, told apart by `kind`."""

from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    TypeAdapter,
    model_validator,
)
from pydantic_core import PydanticCustomError

from workers.contract import (
    ConsensusMotifParams,
    MatrixProfileParams,
    MpdistParams,
    MultidimensionalProfileParams,
    PanProfileParams,
    TrainingParams,
    WholeNumber,
    plain_text,
)
from workers.operations import OPERATIONS

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
        if isinstance(self.devices, list) and len(set(self.devices)) < len(self.devices):
            raise ValueError("`devices` names an index twice; name each once")
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


class MultidimensionalProfileJob(JobFields):
    kind: Literal["multidimensional_profile"]
    params: MultidimensionalProfileParams


class MpdistJob(JobFields):
    kind: Literal["mpdist"]
    params: MpdistParams


class ConsensusMotifJob(JobFields):
    kind: Literal["consensus_motif"]
    params: ConsensusMotifParams


class PanProfileJob(JobFields):
    kind: Literal["pan_profile"]
    params: PanProfileParams


class TrainingJob(JobFields):
    kind: Literal["training"]
    params: TrainingParams


TRAINING: Final = "training"
KINDS: Final = ", ".join(f"`{kind}`" for kind in (*OPERATIONS, TRAINING))
PROBE: Final = "probe"
"""A kind of job that only `POST /capabilities/probes` makes."""


def _known_kind(body: Any) -> Any:
    """Tell of a kind that is not there in words that help; pydantic's own would call it a tag."""
    if not isinstance(body, dict) or body.get("kind") in [*OPERATIONS, TRAINING]:
        return body
    match body.get("kind"):
        case "probe":
            said = "A probe is made by `POST /capabilities/probes`; here, `kind` is one of {kinds}"
        case None:
            said = "is required and is not there; it is one of {kinds}"
        case str():
            said = "`{kind}` is not known here; known are {kinds}"
        case _:
            said = "must be text, one of {kinds}"
    about = {"discriminator": "'kind'", "kinds": KINDS, "kind": str(body.get("kind"))[:100]}
    raise PydanticCustomError("union_tag_invalid", said, about)


JobRequest = Annotated[
    MatrixProfileJob | MultidimensionalProfileJob | MpdistJob | ConsensusMotifJob | PanProfileJob | TrainingJob,
    Discriminator("kind"),
    BeforeValidator(_known_kind),
]
"""Any kind's request, by `kind`."""

REQUESTS: Final[TypeAdapter[JobRequest]] = TypeAdapter(JobRequest)


class Batch(Request):
    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=1000, fail_fast=True)]
