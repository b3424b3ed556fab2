"""The full check, in a child of the training nursery: the configuration parsed, and the Trainer built as far as a CPU can."""

import contextlib
import tempfile
import warnings as python_warnings
from collections.abc import Iterator
from typing import Any, Final

from workers import hardware
from workers.contract import TrainingParams
from workers.training.parsing import ConfigFaults, Parsed, TrainerConfiguration, parse
from workers.training.parsing.naming import imported
from workers.training.rules import Fault, Machine, decide, modules_of, references, with_full_names, with_replaced
from workers.training.rules.pointers import CONFIG, joined
from workers.training.rules.words import FABRIC, TRAINER

STAND_IN: Final = "series.npy"
"""What a reference becomes while nothing is read."""
ALONE: Final = {
    "accelerator": "cpu",
    "devices": 1,
    "num_nodes": 1,
    "strategy": "auto",
    "precision": None,
    "plugins": None,
    "logger": False,
}
"""One process on a CPU: any machine can build that. What goes with the real choices, the rules have checked."""
MANY: Final = 1024


def in_child(params: dict[str, Any], allow: list[str], source: str | None, reporter: object) -> dict[str, Any]:
    """Faults and warnings as `workers.training.check:on_worker` returns them."""
    asked = TrainingParams.model_validate(params)
    stood_in = with_replaced(asked.config, {pointer: STAND_IN for pointer, _ in references(asked)})
    asked = asked.model_copy(update={"config": stood_in})
    python_warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="check-") as folder, contextlib.chdir(folder):
        try:
            parsed = parse(asked, allow, source)
            faults = [*_by_inheritance(asked, allow, source), *_unbuildable(parsed)]
            warnings = parsed.warnings
        except ConfigFaults as wrong:
            faults, warnings = wrong.faults, []
        except SystemExit as ended:
            faults, warnings = [Fault(CONFIG, f"a module that is imported for it ends the process ({ended})")], []
    return {"faults": [{"pointer": fault.pointer, "detail": fault.detail} for fault in faults], "warnings": warnings}


def _by_inheritance(asked: TrainingParams, allow: list[str], source: str | None) -> Iterator[Fault]:
    """A strategy of the user's own is bound to the rules of what it inherits from, which only its class can tell."""
    section = with_full_names(asked).config.get(asked.mode) or {}
    strategy = section.get("strategy")
    if not isinstance(strategy, dict):
        return
    allowed = [*allow, *(modules_of(source) if source else ())]
    cls = imported(strategy["class_path"], joined(CONFIG, asked.mode, "strategy", "class_path"), allowed)
    bases = tuple(base.__name__ for base in cls.__mro__[1:])
    # CUDA that was asked for by name was checked against the whole deployment, of which this is one machine.
    there = MANY if section.get("accelerator") in ("cuda", "gpu") else len(hardware.gpus())
    yield from decide(asked, Machine(cuda_devices=there, cuda_reason="this worker has no CUDA device"), bases).faults


def _unbuildable(parsed: Parsed) -> Iterator[Fault]:
    """What Lightning itself objects to: values out of range, callbacks that exclude each other, packages that are missing."""
    try:
        if isinstance(parsed, TrainerConfiguration):
            parsed.build_trainer(ALONE)
        else:
            parsed.fabric.instantiated()
    except Exception as objection:
        yield Fault(_about(str(objection), parsed), f"{type(objection).__name__}: {objection}")


def _about(message: str, parsed: Parsed) -> str:
    """The argument of Trainer or Fabric that a message names, as nearly as can be told."""
    mode, arguments = (TRAINER, parsed.trainer) if isinstance(parsed, TrainerConfiguration) else (FABRIC, parsed.fabric)
    named = [key for key in arguments.given if key in message]
    return joined(CONFIG, mode, *sorted(named, key=len)[-1:])
