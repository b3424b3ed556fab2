"""Every knob of the server: its unit, its default, one sentence. Environment variables `TIDEMILL_…`, or a `.env` file."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from workers import hardware
from workers.training.rules import DEFAULT_ALLOW

CORES = hardware.cores()


class Settings(BaseSettings):
    """The server's settings. `python -m app --help` prints this table."""

    model_config = SettingsConfigDict(env_prefix="TIDEMILL_", env_file=".env", extra="ignore", frozen=True)

    home: Path = Field(Path("var"), description="Folder of the database, datasets and artifacts.")
    storage: Path | None = Field(
        None,
        description="Folder of datasets, sources and artifacts, where it is not HOME; workers that have it at the same path use it "
        "directly.",
    )
    host: str = Field("127.0.0.1", description="Address to listen on; beyond loopback needs AUTH=keys, or --insecure.")
    port: int = Field(8000, ge=0, le=65535, description="TCP port to listen on; 0 takes a free one.")
    engine: str = Field(
        "dask",
        pattern=r"^(dask|ray|dask,ray|ray,dask)$",
        description="The cluster that runs jobs: `dask` or `ray`, or both as `dask,ray`.",
    )
    dask_scheduler: str = Field(
        "embedded",
        pattern=r"^(embedded|(tcp|tls)://[^/\s]+:\d+)$",
        description="`embedded` starts a scheduler and workers as children; `tcp://…` or `tls://…` joins yours.",
    )
    ray_address: str = Field(
        "embedded",
        pattern=r"^(embedded|auto|([^/\s:]+|\[[0-9a-fA-F:.]+\]):\d+)$",
        description="`embedded` starts a Ray head and workers as children; `HOST:PORT`, or `auto` for one on this machine, joins yours.",
    )
    workers: int = Field(
        min(2, CORES),
        ge=1,
        le=1024,
        description="Workers of an embedded cluster; unless set, two such clusters have half of the default each.",
    )
    worker_threads: int = Field(
        max(1, CORES // 2), ge=1, le=1024, description="Computing threads of each embedded worker."
    )
    cuda_simulator: bool = Field(
        False,
        description="Whether an explicit `backend: cuda` of up to 64 points runs on Numba's CUDA simulator where there is no GPU.",
    )
    public_url: str | None = Field(
        None, description="How workers reach the server, and one more name it answers under; default http://HOST:PORT."
    )
    allowed_hosts: str | None = Field(
        None,
        description="Further names that it answers under, separated by commas, such as a proxy's; `*` is any. Web pages that are not its "
        "own could reach it under any other name.",
    )
    auth: Literal["off", "keys"] = Field(
        "off",
        description="`keys` asks every caller for a key, made by `python -m app keys create`; `off` serves whoever reaches the port, so "
        "beyond loopback it needs --insecure.",
    )
    join_token: str | None = Field(
        None,
        pattern=r"^[!-~]+$",
        repr=False,
        description="Secret that workers must show to join. With AUTH=keys and none set, the server makes one, in HOME/join-token.",
    )
    join_token_file: Path | None = Field(
        None, description="File that holds the join token, where it is not said itself."
    )
    max_upload_bytes: int = Field(1 << 30, ge=1, description="Largest dataset file, bytes as sent.")
    max_unpacked_bytes: int = Field(4 << 30, ge=1, description="Largest dataset after decompression, bytes.")
    allow_source_upload: bool = Field(
        False,
        description="Whether `POST /sources` takes packages: whoever may upload one may run its code on the workers.",
    )
    max_source_bytes: int = Field(64 << 20, ge=1, description="Largest package of users' code, bytes as sent.")
    max_source_unpacked_bytes: int = Field(256 << 20, ge=1, description="Largest such package after unpacking, bytes.")
    max_body_bytes: int = Field(16 << 20, ge=1024, description="Largest JSON body, bytes.")
    max_columns: int = Field(10_000, ge=1, description="Most columns a dataset may have.")
    max_queue: int = Field(10_000, ge=1, description="Most jobs that may wait; further ones are answered 429.")
    max_job_bytes: int | None = Field(
        None, ge=1, description="Most memory a job may need, bytes; none takes that of the largest worker."
    )
    training_allow: str = Field(
        ",".join(DEFAULT_ALLOW),
        description="What `class_path` and `call_path` of a training job may name: modules and packages, separated by commas; "
        "a first `+` adds to the default.",
    )
    training_warm: bool = Field(
        True,
        description="Whether an embedded worker loads torch and Lightning, and probes them, as soon as it has joined; else at first need.",
    )
    reader_memory_bytes: int = Field(
        4 << 30, ge=256 << 20, description="Memory limit of the child that reads an upload or draws a plot, bytes."
    )
    reader_seconds: int = Field(600, ge=1, description="Time limit of that child, seconds of CPU.")
    worker_silence_seconds: float = Field(
        90.0, gt=1, description="A worker that reports nothing for so long counts as lost, seconds."
    )
    evidence_seconds: float = Field(
        86_400.0, gt=0, description="How long a worker's probe counts; it is renewed at half that age, seconds."
    )
    drain_seconds: float = Field(
        3.0,
        ge=0,
        description="On SIGTERM, how long running attempts may still finish before they are stopped, seconds.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much the server logs.")

    @field_validator("join_token", "join_token_file", "allowed_hosts", "public_url", mode="before")
    @classmethod
    def _blank_is_unset(cls, said: object) -> object:
        """Files of settings say `TIDEMILL_…=` for what is not set."""
        return None if said == "" else said

    @property
    def training_allowed(self) -> list[str]:
        """`training_allow` as a list."""
        added = self.training_allow.startswith("+")
        named = [name.strip() for name in self.training_allow.removeprefix("+").split(",") if name.strip()]
        return [*(DEFAULT_ALLOW if added else ()), *named]

    @property
    def url(self) -> str:
        """Where this machine reaches the server."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - read here, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def table() -> str:
    """The settings as lines for `--help`."""
    lines = []
    for name, field in Settings.model_fields.items():
        default = "none" if field.default is None else field.default
        lines.append(f"  TIDEMILL_{name.upper():<24} {field.description} [{default}]")
    return "\n".join(lines)
