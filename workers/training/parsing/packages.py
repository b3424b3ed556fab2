"""Loggers that write through a package of somebody else's, which workers have or have not: asked before one is built."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

from workers.training.rules import Fault
from workers.training.rules.allow import LIGHTNINGS
from workers.training.rules.pointers import joined

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "TensorBoardLogger": ("tensorboard", "tensorboardX"),
    "MLFlowLogger": ("mlflow",),
    "WandbLogger": ("wandb",),
    "CometLogger": ("comet_ml",),
    "LitLogger": ("litlogger",),
}
"""Class of Lightning's → the packages of which it needs one."""
INSTEAD: Final = "CSVLogger needs none, and the service keeps every metric in metrics.csv without being asked"


def lacking(value: Any, pointer: str) -> Iterator[Fault]:
    """Each logger below `value` whose package is not installed here."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from lacking(each, joined(pointer, index))
    if not isinstance(value, dict):
        return
    path = value.get("class_path")
    if isinstance(path, str) and path.startswith(LIGHTNINGS):
        name = path.rpartition(".")[2]
        packages = NEEDS.get(name, ())
        if packages and not any(map(find_spec, packages)):
            wanted = " or ".join(map(repr, packages))
            detail = f"{name} needs the package {wanted}, which the workers do not have. {INSTEAD}."
            yield Fault(pointer, detail)
