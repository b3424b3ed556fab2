"""The strategies of both of Lightning's registries, and those given as objects: one row each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from workers.training.rules.words import AUTO, BOTH, CUDA, FABRIC, TRAINER

SINGLE, DDP, FSDP, DEEPSPEED, XLA = "single_device", "ddp", "fsdp", "deepspeed", "xla"
MODEL_PARALLEL: Final = "model_parallel"
OTHER: Final = "other"
"""A strategy of the user's own."""


@dataclass(frozen=True)
class Strategy:
    """One name, or one class."""

    family: str
    modes: frozenset[str]
    """Whose registry has the name; whose package has the class."""
    runs_as: str | None = None
    """The name that runs in its place."""
    because: str | None = None
    """Why another runs in its place."""
    needs: str | None = None
    """The accelerator without which it cannot run."""
    package: str | None = None
    refusal: str | None = None
    """Why it never runs here."""
    owned: Mapping[str, str] = field(default_factory=dict)
    """Arguments of a class that a configuration may not give, with the reason."""


LAUNCHED: Final = "this service starts the processes itself, with their places and a rendezvous of their own"
PRECISION_ELSEWHERE: Final = "give a precision plugin as `plugins`"
OWNED: Final[Mapping[str, str]] = {
    "accelerator": "it is decided by `accelerator` beside the strategy",
    "parallel_devices": "the devices are those that the job is placed on",
    "cluster_environment": LAUNCHED,
    "checkpoint_io": "this service writes the checkpoints, which a job that is stopped goes on from",
    "precision_plugin": PRECISION_ELSEWHERE,
    "precision": PRECISION_ELSEWHERE,
    "start_method": LAUNCHED,
}

TO_DDP: Final = f"its processes would be started by Lightning, and {LAUNCHED}"
NO_XLA: Final = "it needs TPUs and torch_xla, which this service's workers do not have"
FIND: Final = "_find_unused_parameters_"


def _to_ddp(names: Iterable[str], modes: frozenset[str]) -> dict[str, Strategy]:
    """Names that start processes in another way than this service does run as the plain one, with the same setting."""
    return {
        name: Strategy(DDP, modes, "ddp" + (FIND + name.split(FIND)[1] if FIND in name else ""), TO_DDP)
        for name in names
    }


def _deepspeed(modes: frozenset[str], *names: str) -> dict[str, Strategy]:
    return {name: Strategy(DEEPSPEED, modes, needs=CUDA, package="deepspeed") for name in names}


ONLY_TRAINER: Final = frozenset({TRAINER})
ONLY_FABRIC: Final = frozenset({FABRIC})

STRATEGIES: Final[Mapping[str, Strategy]] = {
    AUTO: Strategy(AUTO, BOTH),
    SINGLE: Strategy(SINGLE, ONLY_TRAINER),
    "ddp": Strategy(DDP, BOTH),
    "ddp_find_unused_parameters_true": Strategy(DDP, BOTH),
    "ddp_find_unused_parameters_false": Strategy(DDP, ONLY_TRAINER),
    **_to_ddp(("ddp_spawn", "ddp_fork", "ddp_notebook"), BOTH),
    **_to_ddp(
        (f"ddp_{how}{FIND}{which}" for how in ("spawn", "fork", "notebook") for which in ("true", "false")),
        ONLY_TRAINER,
    ),
    "dp": Strategy(
        DDP,
        ONLY_FABRIC,
        "ddp",
        "one process that drives several devices is the slower way, and Lightning's Trainer has dropped it",
    ),
    "fsdp": Strategy(FSDP, BOTH, needs=CUDA),
    "fsdp_cpu_offload": Strategy(FSDP, BOTH, needs=CUDA),
    **_deepspeed(BOTH, "deepspeed", "deepspeed_stage_1"),
    **_deepspeed(ONLY_FABRIC, "deepspeed_stage_1_offload"),
    **_deepspeed(BOTH, "deepspeed_stage_2", "deepspeed_stage_2_offload", "deepspeed_stage_3"),
    **_deepspeed(BOTH, "deepspeed_stage_3_offload", "deepspeed_stage_3_offload_nvme"),
    **{name: Strategy(XLA, BOTH, needs="tpu", refusal=NO_XLA) for name in ("xla", "single_xla", "single_tpu")},
    "xla_debug": Strategy(XLA, ONLY_TRAINER, needs="tpu", refusal=NO_XLA),
    "xla_fsdp": Strategy(XLA, ONLY_FABRIC, needs="tpu", refusal=NO_XLA),
}

NOT_ALONE: Final = "it is what others are made of; name one that trains, such as DDPStrategy"

OBJECTS: Final[Mapping[str, Strategy]] = {
    "DDPStrategy": Strategy(DDP, BOTH, owned=OWNED),
    "FSDPStrategy": Strategy(FSDP, BOTH, needs=CUDA, owned=OWNED),
    "DeepSpeedStrategy": Strategy(DEEPSPEED, BOTH, needs=CUDA, package="deepspeed", owned=OWNED),
    "ModelParallelStrategy": Strategy(MODEL_PARALLEL, BOTH, owned=OWNED),
    "SingleDeviceStrategy": Strategy(
        SINGLE,
        BOTH,
        refusal='its device would not follow `accelerator`; leave the strategy at "auto", with `devices: 1`',
    ),
    "DataParallelStrategy": Strategy(
        DDP, ONLY_FABRIC, refusal="several processes are the faster way; name DDPStrategy"
    ),
    "XLAFSDPStrategy": Strategy(XLA, ONLY_FABRIC, needs="tpu", refusal=NO_XLA),
    **{
        name: Strategy(XLA, BOTH, needs="tpu", refusal=NO_XLA)
        for name in ("XLAStrategy", "SingleDeviceXLAStrategy", "SingleTPUStrategy")
    },
    **{
        name: Strategy(OTHER, ONLY_TRAINER, refusal="Lightning has no accelerator for HPUs any more")
        for name in ("HPUParallelStrategy", "SingleHPUStrategy")
    },
    "ParallelStrategy": Strategy(OTHER, BOTH, refusal=NOT_ALONE),
    "Strategy": Strategy(OTHER, BOTH, refusal=NOT_ALONE),
}
"""Lightning's classes by name. A class of the user's own is none of these, and is judged by what it inherits from."""

OWN: Final = Strategy(OTHER, BOTH, owned=OWNED)
