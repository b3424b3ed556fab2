"""What the processes of a job talk to each other with: the backends of torch.distributed, one row each."""

from collections.abc import Mapping
from typing import Final

from workers.training.rules.choices import Choices
from workers.training.rules.strategies import Strategy
from workers.training.rules.words import CUDA, Resolved

KEY: Final = "process_group_backend"
BACKENDS: Final[Mapping[str, str | None]] = {"gloo": None, "nccl": CUDA, "cpu:gloo,cuda:nccl": CUDA}
"""A strategy's `process_group_backend` → the accelerator without which it cannot run."""
OTHERS: Final[Mapping[str, str]] = {
    "mpi": "needs a torch that was built with MPI, and processes that mpirun starts",
    "ucc": "needs a torch that was built with UCC",
    "xccl": "is that of Intel's GPUs, which no worker of this service has",
    "hccl": "is that of HPUs, which no worker of this service has",
}
LEFT_OUT: Final = "left out, it is gloo on the CPU and nccl on CUDA"


def backend(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """A rank finds these out when it looks for the others."""
    strategy = choices.section.get("strategy")
    if not isinstance(strategy, dict):
        return
    for arguments in ("init_args", "dict_kwargs"):
        given = strategy.get(arguments)
        sent = given.get(KEY) if isinstance(given, dict) else None
        if sent is not None and (reason := _objection(choices, sent, resolved)):
            choices.wrong("strategy", reason, arguments, KEY)


def _objection(choices: Choices, sent: object, resolved: Resolved) -> str | None:
    name = sent.lower() if isinstance(sent, str) else ""
    if name not in BACKENDS:
        why = OTHERS.get(name, "is no backend that is known here")
        return f"{sent!r} {why}. Name one of {', '.join(BACKENDS)}; {LEFT_OUT}"
    if BACKENDS[name] == CUDA and resolved.accelerator != CUDA:
        return f"{sent!r} needs CUDA, and accelerator is {resolved.accelerator!r}: {LEFT_OUT}"
    return None
