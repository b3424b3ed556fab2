"""What the tests of reading configurations call in a child."""

import sys
from typing import Any

from workers.contract import TrainingParams

ALONE = {
    "accelerator": "cpu",
    "devices": 1,
    "strategy": "auto",
    "precision": "32-true",
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


def faults(params: dict[str, Any], allow: list[str], source: str | None, reporter: object) -> list[dict[str, str]]:
    from workers.training.parsing import ConfigFaults, parse

    try:
        parse(TrainingParams.model_validate(params), allow, source)
    except ConfigFaults as wrong:
        return [{"pointer": fault.pointer, "detail": fault.detail} for fault in wrong.faults]
    return []


def built(params: dict[str, Any], allow: list[str], source: str | None, reporter: object) -> dict[str, Any]:
    """What was built, told in names; with `fit`, one batch is trained."""
    from workers.training.parsing import parse

    parsed: Any = parse(TrainingParams.model_validate(params), allow, source)
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import CSVLogger

    more = (
        {"callbacks": [Callback()], "logger": [CSVLogger("ours")]}
        if parsed.package.__name__ == "lightning.pytorch"
        else {}
    )
    trainer, model, data = parsed.instantiate({**ALONE, **more, "limit_train_batches": 1, "limit_val_batches": 0})
    trainer.fit(model, datamodule=data)
    optimizer = trainer.optimizers[0]
    return {
        "trainer": type(trainer).__module__,
        "callbacks": [type(each).__name__ for each in trainer.callbacks],
        "loggers": [type(each).__name__ for each in trainer.loggers],
        "optimizer": type(optimizer).__name__,
        "lr": optimizer.defaults["lr"],
        "scheduler": [type(each.scheduler).__name__ for each in trainer.lr_scheduler_configs],
        "steps": trainer.global_step,
        "plain": parsed.plain(),
    }


def called(params: dict[str, Any], allow: list[str], source: str | None, reporter: object) -> dict[str, Any]:
    """What the function of a Fabric configuration answers."""
    from workers.training.parsing import parse

    parsed: Any = parse(TrainingParams.model_validate(params), allow, source)
    fabric, function, kwargs = parsed.instantiate({"accelerator": "cpu", "devices": 1, "strategy": "auto"})
    return {"value": function(fabric, **kwargs), "plain": parsed.plain()}


def command_line_says(configs: list[dict[str, Any]], reporter: object) -> list[str | None]:
    """What `LightningCLI` itself has against each configuration."""
    import os
    import tempfile

    sys.argv = sys.argv[:1]
    with tempfile.TemporaryDirectory(prefix="cli-") as folder:
        os.chdir(folder)
        return [_objection(config) for config in configs]


def _objection(config: dict[str, Any]) -> str | None:
    from lightning.pytorch.cli import LightningCLI

    quiet = {"exit_on_error": False}
    try:
        LightningCLI(
            run=False, args=config, save_config_callback=None, parser_kwargs=quiet, seed_everything_default=False
        )
    except Exception as objection:
        return f"{type(objection).__name__}: {objection}"
    return None


def imports(params: dict[str, Any], allow: list[str], folder: str, name: str, reporter: object) -> dict[str, Any]:
    """Whether `name`, which lies in `folder`, was imported in the course of it."""
    sys.path.insert(0, folder)
    return {"faults": faults(params, allow, None, reporter), "imported": name in sys.modules}


def settings_of_the_nursery(reporter: object) -> bool:
    """In a child of its own: what its parent was left with."""
    from jsonargparse._common import parsing_settings

    return bool(parsing_settings["import_paths_enforced"])
