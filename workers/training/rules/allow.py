"""Which classes and functions a configuration may name. Strings are compared; nothing is imported."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from workers.training.rules.pointers import joined
from workers.training.rules.words import Fault

LIGHTNINGS: Final = ("lightning.", "pytorch_lightning.", "lightning_fabric.")
"""Packages whose classes the tables know by name."""
PARTS: Final = ("callbacks", "loggers", "strategies", "profilers", "plugins", "demos")

DEFAULT_ALLOW: Final[tuple[str, ...]] = (
    *(f"lightning.pytorch.{part}" for part in PARTS),
    *(f"pytorch_lightning.{part}" for part in PARTS),
    "lightning.fabric.strategies",
    "lightning.fabric.plugins",
    "lightning.fabric.loggers",
    # Where the classes above are defined; jsonargparse compares that name too.
    "lightning_fabric.strategies",
    "lightning_fabric.plugins",
    "lightning_fabric.loggers",
    "torch.optim",
    # The one that the command line has in torch's place: it knows which metric to watch.
    "lightning.pytorch.cli.ReduceLROnPlateau",
    "pytorch_lightning.cli.ReduceLROnPlateau",
    "workers.training.data",
    "workers.training.loops",
    "workers.training.models",
)
"""Modules of which each member is meant to be configured. Not Lightning or torch as a whole: they have doors at the side, such as
`lightning.pytorch.cli.instantiate_class` and `torch.hub.load`."""

NAMING_KEYS: Final = ("class_path", "call_path")


def is_allowed(path: str, allow: Sequence[str]) -> bool:
    """Whether `path` is one of `allow`, or lies below it."""
    return any(path == entry or path.startswith(entry + ".") for entry in allow)


def modules_of(source: str | Path) -> list[str]:
    """The top-level modules of an uploaded package's folder, which its own job may name; never one that hides the standard library's."""
    folder = Path(source)
    names = {entry.stem for entry in folder.glob("*.py")}
    names |= {entry.name for entry in folder.iterdir() if entry.is_dir() and any(entry.rglob("*.py"))}
    return sorted(name for name in names if name.isidentifier() and name not in sys.stdlib_module_names | RESERVED)


RESERVED: Final = frozenset(
    {"workers", "app", "jsonargparse", "lightning", "pytorch_lightning", "lightning_fabric", "torch"}
)
"""What an uploaded package may not pass itself off as."""


def off_the_list(value: Any, pointer: str, allow: Sequence[str]) -> Iterator[Fault]:
    """Each `class_path` and `call_path` below `value` that may not be named."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from off_the_list(each, joined(pointer, index), allow)
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        if key in NAMING_KEYS:
            if reason := _objection(each, allow) or (key == "call_path" and _no_loop(each)):
                yield Fault(joined(pointer, key), reason)
        else:
            yield from off_the_list(each, joined(pointer, key), allow)


def _no_loop(path: str) -> str | None:
    """Lightning's and torch's own functions are not written for Fabric, and some would write wherever they are told to."""
    if not path.startswith((*LIGHTNINGS, "torch.")):
        return None
    return f"{path!r} is no function to train with; name one of your own, or 'workers.training.loops.fit'"


def _objection(path: object, allow: Sequence[str]) -> str | None:
    if not isinstance(path, str):
        return f"must be the dotted path of a class or function, not {path!r}"
    if not all(part.isidentifier() for part in path.split(".")) or "." not in path:
        return f"{path!r} is no dotted path of a class or function, such as 'lightning.pytorch.callbacks.EarlyStopping'"
    if is_allowed(path, allow):
        return None
    return (
        f"{path!r} is not on the list of what a configuration may name, and nothing of it was imported. "
        f"The list: {', '.join(allow)}. Those who run this service extend it with TIDEMILL_TRAINING_ALLOW."
    )
