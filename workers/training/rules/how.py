"""How a job runs: strategy and precision, against their tables."""

from collections.abc import Mapping
from typing import Any, Final

from workers.training.rules.allow import LIGHTNINGS
from workers.training.rules.choices import Choices
from workers.training.rules.precisions import CANONICAL, DEFAULT, PRECISIONS, On
from workers.training.rules.strategies import DDP, OBJECTS, OWN, SINGLE, STRATEGIES, Strategy
from workers.training.rules.words import AUTO, CPU, CUDA, FABRIC, NAMES, TRAINER

PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    TRAINER: ("lightning.pytorch.strategies", "pytorch_lightning.strategies"),
    FABRIC: ("lightning.fabric.strategies",),
}
AS_OBJECT: Final = '{"class_path": "…", "init_args": {…}}'


def strategy_of(choices: Choices, accelerator: str | None, world_size: int) -> tuple[str, Strategy]:
    """The strategy's canonical name, and its row."""
    sent = choices.section.get("strategy", AUTO)
    if isinstance(sent, str):
        name, row = _named(choices, sent.lower(), world_size)
    elif isinstance(sent, dict) and isinstance(path := sent.get("class_path"), str):
        name, row = path.rpartition(".")[2], _class(choices, path)
        _arguments(choices, row, sent.get("init_args"))
    else:
        choices.wrong("strategy", f"must be a name, or an object {AS_OBJECT}, not {sent!r}")
        return SINGLE, STRATEGIES[SINGLE]
    if row.needs == CUDA and accelerator == CPU:
        choices.wrong("strategy", f"{name!r} needs CUDA, and accelerator is 'cpu': {_instead(choices)}")
    elif choices.machine.lacks(row.package):
        choices.wrong("strategy", f"{name!r} needs the package {row.package!r}, which the workers do not have")
    return name, row


def _instead(choices: Choices) -> str:
    if choices.machine.cuda_devices:
        return 'ask for accelerator "cuda", or strategy "ddp"'
    return f'{choices.machine.cuda_reason}. Strategy "ddp" runs on the CPU'


def _named(choices: Choices, name: str, world_size: int) -> tuple[str, Strategy]:
    row = STRATEGIES.get(name)
    if row is None or choices.mode not in row.modes:
        _unknown(choices, name, row)
        return name, STRATEGIES[AUTO]
    if row.refusal:
        choices.wrong("strategy", f"{name!r} cannot run here: {row.refusal}")
    if name == AUTO:
        name = SINGLE if world_size == 1 else DDP
        choices.reasons.append(f'Strategy "auto" is {name}: {world_size} process(es).')
        return name, STRATEGIES[name]
    if row.family == SINGLE and world_size > 1:
        choices.wrong("strategy", f'{name!r} is one process, but devices times nodes are {world_size}; use "ddp"')
    if row.runs_as:
        choices.warnings.append(f"Strategy {name!r} runs as {row.runs_as!r}: {row.because}.")
    return row.runs_as or name, row


def _unknown(choices: Choices, name: str, row: Strategy | None) -> None:
    other = NAMES[TRAINER if choices.mode == FABRIC else FABRIC]
    here = ((each, known) for each, known in STRATEGIES.items() if choices.mode in known.modes)
    names = ", ".join(each for each, known in here if not (known.runs_as or known.refusal))
    only_there = f", {other} has" if row else ""
    choices.wrong(
        "strategy",
        f"{choices.title} has no strategy {name!r}{only_there}. Name one of {names}, or give an object {AS_OBJECT}",
    )


def _class(choices: Choices, path: str) -> Strategy:
    """A class of Lightning's has a row; one of the user's own has that of what it inherits from."""
    name = path.rpartition(".")[2]
    if not path.startswith(LIGHTNINGS):
        return next((OBJECTS[base] for base in choices.inherits if base in OBJECTS and not OBJECTS[base].refusal), OWN)
    row = OBJECTS.get(name, OWN)
    if not path.startswith(PACKAGES[choices.mode]) or choices.mode not in row.modes:
        here = " or ".join(PACKAGES[choices.mode])
        choices.wrong("strategy", f"{path!r} is no strategy of {choices.title}, whose are in {here}", "class_path")
    elif row.refusal:
        choices.wrong("strategy", f"{name} cannot be used here: {row.refusal}", "class_path")
    return row


def _arguments(choices: Choices, row: Strategy, arguments: Any) -> None:
    for key, reason in row.owned.items():
        if isinstance(arguments, dict) and arguments.get(key) is not None:
            choices.wrong("strategy", f"`{key}` cannot be set: {reason}", "init_args", key)


def precision_of(choices: Choices, accelerator: str | None, strategy: Strategy) -> str:
    """The canonical name of the precision that runs."""
    sent = choices.section.get("precision")
    if sent is None:
        return DEFAULT
    name = CANONICAL.get(sent) if isinstance(sent, str | int) and not isinstance(sent, bool) else None
    if name is None:
        choices.wrong("precision", f"{sent!r} is no precision; they are {', '.join(map(repr, CANONICAL))}")
        return DEFAULT
    if name != sent and name.endswith("mixed"):
        choices.warnings.append(f"Precision {sent!r} means {name!r}, as in Lightning.")
    row = PRECISIONS[name]
    here = row.on[accelerator] if accelerator else On()
    if here.refusal:
        choices.wrong("precision", f"{name!r} cannot run on {accelerator!r}: {here.refusal}")
    elif choices.machine.lacks(row.package):
        choices.wrong("precision", f"{name!r} needs the package {row.package!r}, which the workers do not have")
    if reason := row.not_with.get(strategy.family):
        choices.wrong("precision", f"{name!r} does not go with that strategy: {reason}")
    if here.warning:
        instead = f"; it runs as {here.runs_as!r}" if here.runs_as else ""
        choices.warnings.append(f"{here.warning}{instead}.")
    return here.runs_as or name
