"""A Lightning CLI configuration on its way: its sections are read one by one, and the faults of all are told together."""

import importlib
from typing import Any

from workers.contract import TrainingParams
from workers.training.parsing.arguments import Arguments, parsed
from workers.training.parsing.faults import ConfigFaults
from workers.training.parsing.naming import imported
from workers.training.parsing.needs import missing, own
from workers.training.parsing.packages import lacking
from workers.training.parsing.strangers import NAMESPACES, strangers
from workers.training.parsing.trainer import Part, TrainerConfiguration
from workers.training.rules import Fault, with_full_names
from workers.training.rules.names import PLATEAU
from workers.training.rules.pointers import CONFIG, joined


class Reading:
    """One configuration, and what is wrong with it so far."""

    def __init__(self, params: TrainingParams, allowed: list[str]) -> None:
        self.params, self.config, self.allowed = params, params.config, allowed
        self.faults: list[Fault] = []

    def cls(self, key: str) -> type | None:
        """The class that a section names."""
        section, pointer = self.config.get(key), joined(CONFIG, key, "class_path")
        if section is None:
            return None
        try:
            found = imported(section["class_path"], pointer, self.allowed)
        except ConfigFaults as wrong:
            self.faults += wrong.faults
            return None
        if isinstance(found, type):
            return found
        self.faults.append(Fault(pointer, f"{section['class_path']!r} is no class"))
        return None

    def part(
        self, key: str, cls: type | None, base: type | tuple[type, ...], skip: tuple[str, ...] = ()
    ) -> Part | None:
        """A section whose class must be a `base`."""
        if cls is None:
            return None
        if not issubclass(cls, base):
            names = " or ".join(
                f"{each.__module__}.{each.__name__}" for each in (base if isinstance(base, tuple) else (base,))
            )
            self.faults.append(
                Fault(joined(CONFIG, key, "class_path"), f"{cls.__module__}.{cls.__name__} is no {names}")
            )
            return None
        section = self.config[key]
        arguments = self.arguments(
            cls, section.get("init_args"), joined(CONFIG, key, "init_args"), skip, section.get("dict_kwargs")
        )
        return Part(cls, arguments) if arguments else None

    def arguments(
        self, cls: type, sent: Any, pointer: str, skip: tuple[str, ...] = (), unseen: dict[str, Any] | None = None
    ) -> Arguments | None:
        try:
            return parsed(cls, sent, pointer, self.allowed, skip, unseen)
        except ConfigFaults as wrong:
            self.faults += wrong.faults
            return None


def read_trainer(params: TrainingParams, allowed: list[str]) -> TrainerConfiguration:
    """Raises ConfigFaults."""
    reading = Reading(params, allowed)
    model_class, data_class = reading.cls("model"), reading.cls("data")
    if model_class is None:
        raise ConfigFaults(reading.faults)
    package = _package(model_class)
    if package is None:
        pointer = joined(CONFIG, "model", "class_path")
        raise ConfigFaults([*reading.faults, Fault(pointer, f"{model_class.__name__} is no LightningModule")])
    if others := list(strangers(params.config, CONFIG, package.__name__)):
        raise ConfigFaults([*reading.faults, *others])
    params = with_full_names(params, package.__name__)
    reading.config = params.config
    import torch

    schedulers = torch.optim.lr_scheduler
    plateau = importlib.import_module(f"{package.__name__}.cli").ReduceLROnPlateau
    reading.faults += lacking((params.config.get("trainer") or {}).get("logger"), joined(CONFIG, "trainer", "logger"))
    trainer = reading.arguments(package.Trainer, params.config.get("trainer"), joined(CONFIG, "trainer"))
    model = reading.part("model", model_class, package.LightningModule)
    data = reading.part("data", data_class, package.LightningDataModule)
    optimizer = reading.part("optimizer", reading.cls("optimizer"), torch.optim.Optimizer, ("params",))
    scheduler_class = reading.cls("lr_scheduler")
    if scheduler_class is schedulers.ReduceLROnPlateau:
        advice = f"name {package.__name__}.cli.{PLATEAU} instead, which knows the metric to `monitor`"
        reading.faults.append(Fault(joined(CONFIG, "lr_scheduler", "class_path"), advice))
        scheduler_class = None
    lr_scheduler = reading.part("lr_scheduler", scheduler_class, (schedulers.LRScheduler, plateau), ("optimizer",))
    reading.faults += missing(
        params.stage, model_class, data_class, params.config.get("optimizer") is not None, package
    )
    if reading.faults or trainer is None or model is None:
        raise ConfigFaults(reading.faults)
    warnings = []
    if optimizer and own(model_class, "configure_optimizers", package.LightningModule):
        warnings.append(
            f"The `optimizer` of the configuration takes the place of {model_class.__name__}.configure_optimizers."
        )
    rest = {"seed_everything": params.config.get("seed_everything", True)}
    return TrainerConfiguration(package, trainer, model, data, optimizer, lr_scheduler, rest, warnings)


def _package(model: type) -> Any:
    for base in model.__mro__:
        if base.__name__ == "LightningModule" and (name := NAMESPACES.get(base.__module__.partition(".")[0])):
            return importlib.import_module(name)
    return None
