"""A function under Fabric: its arguments and Fabric's own, parsed and built."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workers.contract import TrainingParams
from workers.training.parsing.arguments import Arguments, parsed
from workers.training.parsing.faults import ConfigFaults
from workers.training.parsing.naming import imported
from workers.training.parsing.packages import lacking
from workers.training.rules import Fault, with_full_names
from workers.training.rules.pointers import CONFIG, joined

KWARGS = joined(CONFIG, "function", "kwargs")


@dataclass(frozen=True)
class FabricConfiguration:
    """What `mode: fabric` is about."""

    fabric: Arguments
    function: Callable[..., Any]
    arguments: Arguments
    rest: dict[str, Any]
    warnings: list[str] = field(default_factory=list)

    def instantiate(
        self, overrides: dict[str, Any], fabric_class: type | None = None
    ) -> tuple[Any, Callable[..., Any], dict[str, Any]]:
        """The Fabric (of `fabric_class`, where one is given), the function, and what it is called with beside it."""
        from lightning.fabric import Fabric

        made = (fabric_class or Fabric)(**{**self.fabric.instantiated(), **overrides})
        return made, self.function, self.arguments.instantiated()

    def plain(self) -> dict[str, Any]:
        """The whole configuration with every default."""
        call_path = f"{self.function.__module__}.{self.function.__qualname__}"
        return {
            **self.rest,
            "fabric": self.fabric.plain(),
            "function": {"call_path": call_path, "kwargs": self.arguments.plain()},
        }


def read_fabric(params: TrainingParams, allowed: list[str]) -> FabricConfiguration:
    """Raises ConfigFaults."""
    from lightning.fabric import Fabric

    params = with_full_names(params)
    sent, faults = params.config["function"], list[Fault]()
    function = imported(sent["call_path"], joined(CONFIG, "function", "call_path"), allowed)
    fabric = arguments = None
    faults += lacking((params.config.get("fabric") or {}).get("loggers"), joined(CONFIG, "fabric", "loggers"))
    try:
        fabric = parsed(Fabric, params.config.get("fabric"), joined(CONFIG, "fabric"), allowed)
    except ConfigFaults as wrong:
        faults += wrong.faults
    try:
        arguments = _arguments(function, dict(sent.get("kwargs") or {}), allowed)
    except ConfigFaults as wrong:
        faults += wrong.faults
    if faults or fabric is None or arguments is None:
        raise ConfigFaults(faults)
    return FabricConfiguration(
        fabric, function, arguments, {"seed_everything": params.config.get("seed_everything", True)}
    )


def _arguments(function: Any, kwargs: dict[str, Any], allowed: list[str]) -> Arguments:
    """`kwargs` against the signature, of which the first parameter is for Fabric."""
    at = joined(CONFIG, "function", "call_path")
    if not inspect.isfunction(function):
        raise ConfigFaults([Fault(at, "must name a function, which is called as f(fabric, **kwargs)")])
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise ConfigFaults([Fault(at, f"{function.__name__} takes no Fabric: its first parameter must be for it")])
    named = {each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}
    takes_any = len(named) < len(parameters)
    unseen = {key: kwargs.pop(key) for key in list(kwargs) if takes_any and key not in named}
    return parsed(function, kwargs, KWARGS, allowed, (parameters[0].name,), unseen)
