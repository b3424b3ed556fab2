"""What the server and its workers tell each other."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from workers.contract.scalars import Message, Sample

VERSION = "5"
"""Raised with every change of a message; a worker of another version is refused, whatever it sends."""
PROTOCOL: Final = "Tidemill-Protocol"
"""The header in which a worker says its version."""
STORAGE_MARK: Final = ".tidemill-storage"
"""A file in the server's storage that holds its id: who finds it at the same path has the same folder."""


# ---- what a worker is told -------------------------------------------------------------------------------------


class Source(Message):
    """Where a worker finds one series: a stored float64 column to memory-map, or the values themselves."""

    name: str
    path: str | None = None
    time_path: str | None = None
    start: int = 0
    stop: int | None = None
    values: list[Sample] | None = None


class TableSource(Message):
    """Where a worker finds a whole dataset: the file as uploaded, and its numeric columns as float64 to memory-map."""

    name: str
    """As uploaded: `iris.csv`."""
    format: str
    """`csv`, `tsv`, `parquet`, `npy`, `npz` or `json`."""
    content: str
    reading: dict[str, Any]
    """How the file was read: what `GET /datasets/{id}` shows."""
    columns: dict[str, str]
    """name → path, of the numeric columns, in their order."""
    text_columns: list[str] = Field(default_factory=list)
    """Names of the columns that are not numbers; only the file has them."""
    time_column: str | None = None
    time_path: str | None = None
    rows: int


class Node(Message):
    """One worker of a training job's gang, with what of it is the job's alone meanwhile."""

    worker: str
    address: str
    host: str
    threads: int
    devices: list[int] = Field(default_factory=list)
    """CUDA indices on that worker."""
    shares_storage: bool = True
    """Whether it has the server's storage as a folder."""


class TrainingTask(Message):
    """What a training job's driver needs beside the task itself."""

    nodes: list[Node]
    """The gang, in the order of node ranks; the first one is the driver's own worker."""
    tables: dict[str, TableSource] = Field(default_factory=dict)
    """JSON Pointer into `params` → the dataset that a reference there names. (Series references are in the task's `sources`.)"""
    checkpoint: str | None = None
    """The file of another job that `config.ckpt_path` names."""
    earlier: list[str] = Field(default_factory=list)
    """Folders of earlier attempts, the newest first, whose checkpoints the job goes on from."""
    metrics_seen: dict[str, int] = Field(default_factory=dict)
    """metric → the last step whose value the server has as an event of this very job."""
    source: str | None = None
    """Folder of the uploaded package that is importable in this job's ranks."""
    allow: list[str] = Field(default_factory=list)
    """What `class_path` may name: modules and packages."""


class StorageFacts(Message):
    """Where the server's files are. A worker that finds the same folder at that path, with that id in it, uses it directly; others
    fetch what they read, and put back what they make, over HTTP."""

    path: str
    id: str


class Task(Message):
    """One attempt's work, as the granted claim hands it to the driver."""

    attempt: str
    job: str
    kind: str
    params: dict[str, Any]
    """What was asked, without the series."""
    sources: dict[str, list[Source]]
    """The series by the names of their parameters: `series`, `against`, `a`, `b`; of a training job, by JSON Pointers into `params`."""
    plan: dict[str, Any]
    devices: list[int] = Field(default_factory=list)
    """CUDA indices on its worker that are the attempt's alone."""
    folder: str
    storage: StorageFacts | None = None
    """Of the server, now: it may have been started with another one since the worker joined."""
    earlier: list[str] = Field(default_factory=list)
    """Folders of earlier attempts, the newest first, of this job and of those it is a retry of: what they kept need not be done again."""
    training: TrainingTask | None = None


def below(name: str) -> str:
    """A relative path that stays below where it starts."""
    parts = name.split("/")
    if len(name) > 255 or "\x00" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no name of a file")
    return name


class FileFacts(Message):
    """A file of the server's storage; `name` is its path below that."""

    name: str
    bytes: int
    sha256: str
    modified_ns: int
    """Nanoseconds since 1970."""


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


class Artifact(Message):
    """A file an attempt leaves behind; `name` is its path below the attempt's folder."""

    name: Annotated[str, AfterValidator(below)]
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
    artifacts: list[Artifact] = Field(default_factory=list)


class Running(Message):
    """One line of a worker's heartbeat: this attempt runs here, under this claim."""

    attempt: str
    claim: str


class Report(Message):
    """What an agent posts once a second, and at once when something that matters happened."""

    running: list[Running]
    """Attempts whose driver is here."""
    pieces: list[Running] = Field(default_factory=list)
    """Attempts of which a piece is computed here; their driver may be on another worker."""
    events: list[ReportedEvent] = Field(default_factory=list)
    outcomes: list[Outcome] = Field(default_factory=list)


class ReportAnswer(Message):
    """What the server says to a report: which outcomes are safe with it, and what must stop."""

    acknowledged: list[str]
    stop: list[str]
    peers: dict[str, int] | None = None
    """Addresses of the workers of the same engine that are up, as the server sees it, with their computing threads: pieces go to no
    others."""


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
    storage: str | None = None
    """The id of the server's storage that it was told of."""
    shares_storage: bool = True
    """Whether it reads and writes that folder itself; else files go over HTTP."""
