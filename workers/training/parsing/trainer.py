"""A Lightning CLI configuration that was read: built into a Trainer, a model and a data module, as `LightningCLI` would."""

from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Final

from workers.training.parsing.arguments import Arguments
from workers.training.rules.names import PLATEAU

ADDED: Final = ("callbacks", "logger")
"""Arguments of Trainer to which an override adds, where others replace."""


@dataclass(frozen=True)
class Part:
    """One class of the configuration, with its arguments."""

    cls: type
    arguments: Arguments

    def build(self, *first: Any) -> Any:
        return self.cls(*first, **self.arguments.instantiated())

    def plain(self) -> dict[str, Any]:
        return {"class_path": f"{self.cls.__module__}.{self.cls.__qualname__}", "init_args": self.arguments.plain()}


@dataclass(frozen=True)
class TrainerConfiguration:
    """What `mode: trainer` is about."""

    package: Any
    """`lightning.pytorch`, or `pytorch_lightning` where the model is of that."""
    trainer: Arguments
    model: Part
    data: Part | None
    optimizer: Part | None
    lr_scheduler: Part | None
    rest: dict[str, Any]
    """`seed_everything` and its like, as sent."""
    warnings: list[str] = field(default_factory=list)

    def build_trainer(self, overrides: dict[str, Any]) -> Any:
        """Overrides replace what the configuration says; callbacks and loggers are added to its own."""
        given = self.trainer.instantiated()
        given["logger"] = given["logger"] if given.get("logger") not in (None, True, False) else []
        for key, value in overrides.items():
            given[key] = [*_listed(given.get(key)), *_listed(value)] if key in ADDED else value
        if given.get("enable_progress_bar") is False:
            bars = self.package.callbacks.ProgressBar
            given["callbacks"] = [each for each in _listed(given.get("callbacks")) if not isinstance(each, bars)]
        given["logger"] = given["logger"] or False
        return self.package.Trainer(**given)

    def instantiate(self, overrides: dict[str, Any]) -> tuple[Any, Any, Any | None]:
        """The trainer, the model and the data module."""
        data = self.data.build() if self.data else None
        model = self.model.build()
        if self.optimizer:
            model.configure_optimizers = MethodType(_configuring(self.optimizer, self.lr_scheduler), model)
        return self.build_trainer(overrides), model, data

    def plain(self) -> dict[str, Any]:
        """The whole configuration with every default, as `LightningCLI` saves it."""
        parts = {"model": self.model, "data": self.data, "optimizer": self.optimizer, "lr_scheduler": self.lr_scheduler}
        told = {key: part.plain() for key, part in parts.items() if part}
        return {**self.rest, "trainer": self.trainer.plain(), **told}


def _listed(value: Any) -> list[Any]:
    return [] if value in (None, True, False) else list(value) if isinstance(value, list | tuple) else [value]


def _configuring(optimizer: Part, lr_scheduler: Part | None) -> Any:
    """`configure_optimizers`. The optimizer is made when it is asked for: a strategy may have replaced the parameters by then."""

    def configure_optimizers(module: Any) -> Any:
        made = optimizer.build(module.parameters())
        if lr_scheduler is None:
            return made
        scheduler = lr_scheduler.build(made)
        if lr_scheduler.cls.__name__ == PLATEAU:
            return {"optimizer": made, "lr_scheduler": {"scheduler": scheduler, "monitor": scheduler.monitor}}
        return [made], [scheduler]

    return configure_optimizers
