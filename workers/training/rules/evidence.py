"""What the training probes proved, laid over the tables: the `training` part of `GET /capabilities`."""

from collections.abc import Mapping
from typing import Any, Final

from workers.contract import Probe
from workers.training.rules.accelerators import ACCELERATORS
from workers.training.rules.precisions import PRECISIONS
from workers.training.rules.strategies import DDP, OBJECTS, OTHER, SINGLE, STRATEGIES, Strategy
from workers.training.rules.words import AUTO, CPU, CUDA, FABRIC, NAMES, TRAINER

EXECUTED: Final = "executed"
NO_PROBE: Final = "no worker has run the training probes"
Answer = dict[str, Any]
"""`available`, `evidence` and `reason`."""


def accelerator_probe(name: str) -> str:
    """The name of the probe that runs torch on an accelerator."""
    return f"training/accelerator/{name}"


def precision_probe(name: str, accelerator: str) -> str:
    return f"training/precision/{name}/{accelerator}"


def strategy_probe(mode: str, strategy: str) -> str:
    return f"training/{mode}/{strategy}"


def capabilities(probes: Mapping[str, Probe]) -> dict[str, Any]:
    """`accelerators`, `strategies` and `precisions`, each name of the tables with what is known of it.

    probes: by name, of each the best that any worker has.
    """
    shown = {**STRATEGIES, **{name: row for name, row in OBJECTS.items() if row.family not in (OTHER, SINGLE)}}
    return {
        "accelerators": {name: _accelerator(name, probes) for name in ACCELERATORS},
        "strategies": {
            name: {mode: _strategy(name, row, mode, probes) for mode in (TRAINER, FABRIC)}
            for name, row in shown.items()
        },
        "precisions": {
            name: {accelerator: _precision(name, accelerator, probes) for accelerator in (CPU, CUDA)}
            for name in PRECISIONS
        },
    }


def _answer(probe: Probe | None, otherwise: str = NO_PROBE) -> Answer:
    """Nothing is available on less than a run."""
    if probe is None:
        return _absent(otherwise)
    ran = probe.evidence == EXECUTED
    return {"available": ran, "evidence": probe.evidence, "reason": None if ran else probe.detail}


def _absent(reason: str, evidence: str = "absent") -> Answer:
    return {"available": False, "evidence": evidence, "reason": reason}


def _accelerator(name: str, probes: Mapping[str, Probe]) -> Answer:
    row = ACCELERATORS[name]
    if row.runs_as is None:
        return _absent(row.refusal or "")
    on_cuda, on_cpu = (probes.get(accelerator_probe(each)) for each in (CUDA, CPU))
    if row.runs_as == AUTO:
        return _answer(on_cuda if on_cuda and on_cuda.evidence == EXECUTED else on_cpu)
    return _answer(on_cuda if row.runs_as == CUDA else on_cpu)


def _strategy(name: str, row: Strategy, mode: str, probes: Mapping[str, Probe]) -> Answer:
    if mode not in row.modes:
        return _absent(f"{NAMES[mode]} has no strategy of this name")
    if row.refusal:
        return _absent(row.refusal)
    found = probes.get(strategy_probe(mode, _shown_by(name, row)))
    if found is None and row.needs == CUDA:
        cuda = probes.get(accelerator_probe(CUDA))
        if cuda is None or cuda.evidence != EXECUTED:
            return _absent(f"it needs CUDA: {cuda.detail if cuda else NO_PROBE}")
        return _absent("no probe runs it; a job that asks for it is tried", "configured")
    return _answer(found)


def _shown_by(name: str, row: Strategy) -> str:
    """The strategy whose probe speaks for this one: the same class, with another setting or another way to start."""
    if name == AUTO:
        return SINGLE
    if row.family == DDP:
        return DDP
    return {"FSDPStrategy": "fsdp", "DeepSpeedStrategy": "deepspeed", "deepspeed_stage_2": "deepspeed"}.get(name, name)


def _precision(name: str, accelerator: str, probes: Mapping[str, Probe]) -> Answer:
    here = PRECISIONS[name].on[accelerator]
    if here.refusal:
        return _absent(here.refusal)
    found = probes.get(precision_probe(here.runs_as or name, accelerator))
    if found is None and accelerator == CUDA:
        cuda = probes.get(accelerator_probe(CUDA))
        return _absent(f"it needs CUDA: {cuda.detail if cuda else NO_PROBE}")
    answer = _answer(found)
    return {**answer, "reason": f"{here.warning}; it runs as {here.runs_as}"} if here.runs_as else answer
