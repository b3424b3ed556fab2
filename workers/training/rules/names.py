"""Short names of classes, as Lightning's command line takes them: `EarlyStopping` among the callbacks, `AdamW` as the optimizer."""

from collections.abc import Mapping
from typing import Any, Final

from workers.contract import TrainingParams
from workers.training.rules.words import FABRIC, TRAINER

ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    TRAINER: {key: f"{{package}}.{key.rstrip('s')}s" for key in ("callbacks", "logger", "profiler", "plugins")}
    | {"strategy": "{package}.strategies"},
    FABRIC: {
        "strategy": "lightning.fabric.strategies",
        "loggers": "lightning.fabric.loggers",
        "plugins": "lightning.fabric.plugins",
    },
}
"""Argument of Trainer or Fabric → where its classes are."""
SECTIONS: Final[Mapping[str, str]] = {"optimizer": "torch.optim", "lr_scheduler": "torch.optim.lr_scheduler"}
PLATEAU: Final = "ReduceLROnPlateau"
PACKAGE: Final = "lightning.pytorch"


def with_full_names(params: TrainingParams, package: str = PACKAGE) -> TrainingParams:
    """The same parameters, each short name at its place in full. `package`: the one that the model is of."""
    config = dict(params.config)
    for key, home in SECTIONS.items():
        config[key] = _full(config.get(key), home, package)
    section = config.get(params.mode)
    if isinstance(section, dict):
        homes = {key: home.format(package=package) for key, home in ARGUMENTS[params.mode].items()}
        config[params.mode] = {
            key: _full(value, homes[key], package) if key in homes else value for key, value in section.items()
        }
    kept = {key: value for key, value in config.items() if key in params.config}
    return params.model_copy(update={"config": kept})


def _full(value: Any, home: str, package: str) -> Any:
    """One class, or a list of them, in full."""
    if isinstance(value, list):
        return [_full(each, home, package) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get("class_path")
    if not isinstance(name, str) or not name.isidentifier():
        return value
    # Lightning's command line has a class of its own in the place of torch's.
    module = f"{package}.cli" if name == PLATEAU else home
    return {**value, "class_path": f"{module}.{name}"}
