"""A Trainer with our part in it, and the stage that it is to run."""

import importlib
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workers.training.checkpoints import WRITING, holds_objects, size_of
from workers.training.conductor_post import Post
from workers.training.conductor_saving import Saving
from workers.training.conductor_watching import Watching
from workers.training.metrics_logger import Logging
from workers.training.spec import RankSpec


def overrides(spec: RankSpec) -> dict[str, Any]:
    """The Trainer's arguments that are not the user's to choose, or that the plan has resolved."""
    asked, resolved = spec.params.config.get("trainer") or {}, spec.resolved
    decided: dict[str, Any] = {
        "accelerator": resolved.accelerator,
        "devices": resolved.devices,
        "num_nodes": resolved.num_nodes,
        "default_root_dir": spec.folder,
        "enable_progress_bar": False,
    }
    if not isinstance(asked.get("strategy"), Mapping):
        # By its name, `single_device` would put the model on the CPU whatever the accelerator.
        decided["strategy"] = "auto" if resolved.strategy == "single_device" else resolved.strategy
    if not has_precision_plugin(asked.get("plugins")):
        decided["precision"] = resolved.precision
    return decided


def join(trainer: Any, post: Post) -> None:
    """Take our places in a Trainer that was just built."""
    spec = post.spec
    namespace = namespace_of(trainer)
    _leave_signals_alone(trainer)
    _tell_of_checkpoints(trainer, post)
    ours = _classes(namespace)
    asked = spec.params.config.get("trainer") or {}
    callbacks, checkpoints = [], []
    for callback in trainer.callbacks:
        if type(callback).__name__ == "OnExceptionCheckpoint" and spec.world_size > 1:
            post.reporter.warning(
                "OnExceptionCheckpoint is left out: with several ranks it waits for one that has failed."
            )
        elif isinstance(callback, namespace.callbacks.Checkpoint):
            checkpoints.append(callback)
        else:
            callbacks.append(callback)
    if not any(path.endswith("Checkpoint") for path in _class_paths(asked.get("callbacks"))):
        # The one that Trainer adds by itself.
        default = namespace.callbacks.ModelCheckpoint
        checkpoints = [
            _best_checkpoint(namespace, spec.folder) if type(each) is default else each for each in checkpoints
        ]
    wanted = (
        asked.get("enable_checkpointing") is not False and not asked.get("fast_dev_run") and not asked.get("barebones")
    )
    trainer.callbacks = [ours["watching"](post), *callbacks, *checkpoints, ours["saving"](post, trainer, wanted=wanted)]
    if not asked.get("barebones"):
        trainer.loggers = [*trainer.loggers, ours["logging"](post, trainer)]


def run(trainer: Any, module: Any, data: Any, spec: RankSpec) -> Mapping[str, float]:
    """Run the stage and return its metrics."""
    with warnings.catch_warnings():
        # The folder is the attempt's: it is never empty, and nobody else's.
        warnings.filterwarnings("ignore", message=r"Checkpoint directory .* exists and is not empty")
        warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated")
        stage, from_file = spec.params.stage, dict[str, Any]()
        if spec.checkpoint:
            # Objects are code. The job's own have run here already; those of another job's checkpoint are not loaded.
            own_objects = spec.resumes and holds_objects(Path(spec.checkpoint))
            from_file = {"ckpt_path": spec.checkpoint, "weights_only": not own_objects}
        match stage:
            case "fit":
                trainer.fit(module, datamodule=data, **from_file)
            case "predict":
                trainer.predict(module, datamodule=data, return_predictions=False, **from_file)
            case _:
                getattr(trainer, stage)(module, datamodule=data, verbose=False, **from_file)
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def namespace_of(trainer: Any) -> Any:
    """`lightning.pytorch` or `pytorch_lightning`, whichever this Trainer is of."""
    base = next(each for each in type(trainer).__mro__ if each.__name__ == "Trainer" and "lightning" in each.__module__)
    name = "pytorch_lightning" if base.__module__.startswith("pytorch_lightning") else "lightning.pytorch"
    importlib.import_module(f"{name}.callbacks")
    importlib.import_module(f"{name}.loggers")
    return importlib.import_module(name)


def _classes(namespace: Any) -> dict[str, Any]:
    callbacks, logger = namespace.callbacks, namespace.loggers.logger.Logger
    return {
        "watching": type("Watching", (Watching, callbacks.Callback), {}),
        "saving": type("Saving", (Saving, callbacks.Checkpoint), {}),
        "logging": type("Logging", (Logging, logger), {}),
    }


def _best_checkpoint(namespace: Any, folder: str) -> Any:
    """Keeps the best checkpoint by `val_loss` where that is logged, and the newest one elsewhere."""

    class BestCheckpoint(namespace.callbacks.ModelCheckpoint):
        @property
        def state_key(self) -> str:
            return "tidemill-best"

        def _save_topk_checkpoint(self, trainer: Any, monitor_candidates: dict[str, Any]) -> None:
            score = monitor_candidates.get("val_loss")
            self.monitor = "val_loss" if score is not None else None
            if score is None or math.isfinite(float(score)):
                super()._save_topk_checkpoint(trainer, monitor_candidates)

    return BestCheckpoint(dirpath=folder, save_top_k=1, enable_version_counter=False)


def _leave_signals_alone(trainer: Any) -> None:
    """Lightning's SIGTERM handler is a collective in a signal handler, and asks all ranks at every batch whether it was called.

    Here a stop is asked for in another way, and SIGTERM ends the process.
    """
    trainer._signal_connector.register_signal_handlers = lambda: None
    if hasattr(trainer.fit_loop.epoch_loop, "_broadcast_sigterm_tensor"):
        trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None


def _tell_of_checkpoints(trainer: Any, post: Post) -> None:
    """An event for each checkpoint, whoever has it written."""
    save, folder = trainer.save_checkpoint, Path(post.spec.folder)

    def save_and_tell(filepath: Any, *args: Any, **kwargs: Any) -> None:
        save(filepath, *args, **kwargs)
        path = Path(filepath).absolute()
        if post.spec.rank == 0 and not path.name.startswith(WRITING) and path.is_relative_to(folder) and path.exists():
            post.reporter.artifact(path.relative_to(folder).as_posix(), size_of(path))

    trainer.save_checkpoint = save_and_tell


def _class_paths(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Mapping) and isinstance(each.get("class_path"), str):
            yield each["class_path"]


def has_precision_plugin(plugins: Any) -> bool:
    return any("Precision" in path for path in _class_paths(plugins))
