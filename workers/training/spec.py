"""What one rank of a training job is told: which process of which world it is, and what that world shall do."""

from typing import Annotated

from pydantic import Field

from workers.contract import Message, TrainingParams
from workers.training.rules import Resolved

LAST = "last.ckpt"
METRICS = "metrics.csv"
RESULT = "result.json"
SHARED_LOG = "log.txt"


class RankSpec(Message):
    """One rank. All but `rank`, `local_rank`, `node_rank`, `devices` and `threads` is the same in all ranks of an attempt."""

    attempt: str
    job: str
    params: TrainingParams
    """References are replaced by local paths. `config.ckpt_path` has no meaning here: `checkpoint` has."""
    resolved: Resolved
    folder: str
    """The attempt's folder: the working directory of every rank. All that a rank leaves lies below it."""
    rank: Annotated[int, Field(ge=0)]
    local_rank: Annotated[int, Field(ge=0)]
    node_rank: Annotated[int, Field(ge=0)]
    local_world_size: Annotated[int, Field(ge=1)]
    master_address: str
    master_port: int
    """Of the store that the supervisor's keeper serves; all ranks are its clients."""
    threads: Annotated[int, Field(ge=1)]
    devices: list[int] = Field(default_factory=list)
    """CUDA indices on this node; none on CPU."""
    interface: str | None = None
    """The network interface that gloo and NCCL are to use."""
    seed: int
    checkpoint: str | None = None
    """The file to start from: weights and state."""
    resumes: bool = False
    """Whether `checkpoint` is the job's own, to go on from, or one that `ckpt_path` named."""
    resumes_in: str | None = None
    """The folder of the attempt that it is of."""
    metrics_before: str | None = None
    """The `metrics.csv` of the attempt that `checkpoint` is of; its rows up to that step are this attempt's too."""
    metrics_seen: dict[str, int] = Field(default_factory=dict)
    """metric → the last step whose value the server has as an event."""
    source: str | None = None
    """Folder of the uploaded package."""
    allow: list[str] = Field(default_factory=list)
    temporary: str | None = None
    """A folder of this node's ranks alone for what is temporary; its supervisor removes it once they have ended."""
    stop_file: str
    """Once it exists, all ranks are to stop. Only rank 0 looks."""

    @property
    def world_size(self) -> int:
        return self.resolved.world_size
