"""The plugins that Lightning knows, by the name of their class: what each is for, and why some are refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workers.training.rules.strategies import DEEPSPEED, FSDP, LAUNCHED
from workers.training.rules.words import CUDA

PRECISION, CHECKPOINTS, CLUSTER, LAYERS = "precision", "checkpoints", "cluster environment", "layer synchronisation"
OTHER: Final = "other"


@dataclass(frozen=True)
class Plugin:
    """One class."""

    sort: str
    """Of each sort a configuration may give one."""
    needs: str | None = None
    package: str | None = None
    only_with: str | None = None
    """The family of strategies that it belongs to."""
    refusal: str | None = None


NO_XLA: Final = "it needs TPUs and torch_xla, which this service's workers do not have"
OURS: Final = f"{LAUNCHED}, in the environment that torchrun would give them"
IN_A_THREAD: Final = (
    "it writes checkpoints behind the training's back, and a job that is stopped would leave half of one"
)

PLUGINS: Final[Mapping[str, Plugin]] = {
    "Precision": Plugin(PRECISION),
    "DoublePrecision": Plugin(PRECISION),
    "HalfPrecision": Plugin(PRECISION),
    "MixedPrecision": Plugin(PRECISION),
    "FSDPPrecision": Plugin(PRECISION, needs=CUDA, only_with=FSDP),
    "DeepSpeedPrecision": Plugin(PRECISION, needs=CUDA, package="deepspeed", only_with=DEEPSPEED),
    "BitsandbytesPrecision": Plugin(PRECISION, needs=CUDA, package="bitsandbytes"),
    "TransformerEnginePrecision": Plugin(PRECISION, needs=CUDA, package="transformer_engine"),
    "XLAPrecision": Plugin(PRECISION, refusal=NO_XLA),
    "TorchCheckpointIO": Plugin(CHECKPOINTS),
    "AsyncCheckpointIO": Plugin(CHECKPOINTS, refusal=IN_A_THREAD),
    "XLACheckpointIO": Plugin(CHECKPOINTS, refusal=NO_XLA),
    "TorchSyncBatchNorm": Plugin(LAYERS),
    **{
        f"{name}Environment": Plugin(CLUSTER, refusal=OURS)
        for name in ("TorchElastic", "Lightning", "SLURM", "LSF", "MPI", "Kubeflow", "XLA")
    },
}
OWN: Final = Plugin(OTHER)
