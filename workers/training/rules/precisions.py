"""The precisions that Lightning knows: one row each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from workers.training.rules.strategies import DEEPSPEED, FSDP, MODEL_PARALLEL
from workers.training.rules.words import CPU, CUDA


@dataclass(frozen=True)
class On:
    """What a precision is on one accelerator: itself, another one, or refused."""

    runs_as: str | None = None
    """The precision that runs in its place."""
    warning: str | None = None
    refusal: str | None = None


@dataclass(frozen=True)
class Precision:
    """One precision."""

    on: Mapping[str, On]
    aliases: tuple[str | int, ...] = ()
    not_with: Mapping[str, str] = field(default_factory=dict)
    """Family of strategies → why not."""
    package: str | None = None


FINE: Final = {CPU: On(), CUDA: On()}
HALF_ONLY: Final = "it keeps its weights in 32 or 16 bits"
NO_SCALER: Final = "it has no gradient scaler, which fp16 needs; bf16-mixed needs none"
NO_DEEPSPEED_NAME: Final = "its engine takes 32-true, 16-true, bf16-true, 16-mixed and bf16-mixed"
NO_FSDP_NAME: Final = "it takes 32-true, 16-true, bf16-true, 16-mixed and bf16-mixed"

DOUBLE: Final = {FSDP: HALF_ONLY, DEEPSPEED: HALF_ONLY, MODEL_PARALLEL: HALF_ONLY}
ENGINE: Final = {
    FSDP: NO_FSDP_NAME,
    DEEPSPEED: NO_DEEPSPEED_NAME,
    MODEL_PARALLEL: "it takes 32-true, 16-true, bf16-true and bf16-mixed",
}
FP8_ON_CPU: Final = "Transformer Engine is NVIDIA's, for 8-bit numbers on its GPUs; there is none for the CPU"
ENGINE_ON: Final = {CPU: On(refusal=FP8_ON_CPU), CUDA: On()}
HALF_ON_CPU: Final = (
    "16-true on the CPU is slow, some operations do not exist in half precision there, and its small range makes training "
    "unstable; bf16-true has the range of 32 bits"
)
MIXED_ON_CPU: Final = "16-mixed does not exist on the CPU: fp16 autocast needs CUDA"

PRECISIONS: Final[Mapping[str, Precision]] = {
    "64-true": Precision(FINE, ("64", 64), DOUBLE),
    "32-true": Precision(FINE, ("32", 32)),
    "16-true": Precision({CPU: On(warning=HALF_ON_CPU), CUDA: On()}),
    "bf16-true": Precision(FINE),
    "16-mixed": Precision(
        {CPU: On(runs_as="bf16-mixed", warning=MIXED_ON_CPU), CUDA: On()}, ("16", 16), {MODEL_PARALLEL: NO_SCALER}
    ),
    "bf16-mixed": Precision(FINE, ("bf16",)),
    "transformer-engine": Precision(ENGINE_ON, (), ENGINE, "transformer_engine"),
    "transformer-engine-float16": Precision(ENGINE_ON, (), ENGINE, "transformer_engine"),
}
DEFAULT: Final = "32-true"

CANONICAL: Final[Mapping[str | int, str]] = {
    **{name: name for name in PRECISIONS},
    **{alias: name for name, row in PRECISIONS.items() for alias in row.aliases},
}
"""Every way to write a precision → its name. `16` means mixed, as in Lightning, not `16-true`."""
