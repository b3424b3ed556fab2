"""Fabric with our part in it: every `backward` is a step, every `save` is told of, every `log` is a metric."""

import contextlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lightning.fabric import Fabric
from lightning.fabric.loggers.logger import Logger

from workers.training.checkpoints import FABRIC_KEY, size_of
from workers.training.conductor_post import Post
from workers.training.spec import RankSpec
from workers.training.stages import has_precision_plugin


class RankFabric(Fabric):
    """What the user's function gets. All ranks must call `backward` equally often, as their gradients are added up anyway."""

    post: Post

    @property
    def checkpoint_path(self) -> str | None:
        """A checkpoint to go on from, which this function saved in an earlier attempt, or that `ckpt_path` names."""
        return self.post.spec.checkpoint

    def backward(self, tensor: Any, *args: Any, **kwargs: Any) -> None:
        super().backward(tensor, *args, **kwargs)
        post, pace = self.post, self.post.reporter.pace
        post.losses.add(post.steps, None, tensor)
        post.steps += 1
        pace.beats += 1
        pace.stage, pace.step, pace.done = "fit", post.steps, post.steps
        post.conductor.step()
        if pace.beats % 32 == 0:
            post.losses.check()

    def save(self, path: str | Path, state: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().save(path, {**state, FABRIC_KEY: self.post.steps}, *args, **kwargs)
        folder, written = Path(self.post.spec.folder), Path(path).absolute()
        if self.post.spec.rank == 0 and written.is_relative_to(folder) and written.exists():
            self.post.reporter.artifact(written.relative_to(folder).as_posix(), size_of(written))

    def load(self, path: str | Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As Fabric's own. From the job's own checkpoint, steps are counted on, and their metrics are taken over."""
        rest: dict[str, Any] = super().load(path, *args, **kwargs)
        steps, post, spec = rest.pop(FABRIC_KEY, None), self.post, self.post.spec
        if steps is not None and spec.resumes and str(path) == spec.checkpoint:
            post.steps = steps
            if spec.metrics_before and post.table:
                post.table.adopt(Path(spec.metrics_before), steps)
        return rest


class FabricLogging(Logger):
    """What the function logs."""

    name, version = "", ""

    def __init__(self, post: Post) -> None:
        self._post = post

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None: ...

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        if table := self._post.table:
            values = numbers(metrics)
            epoch = values.pop("epoch", None)
            at = max(self._post.steps - 1, 0) if step is None else int(step)
            table.note(at, None if epoch is None else int(epoch), values)


def overrides(spec: RankSpec) -> dict[str, Any]:
    """Fabric's arguments that are not the user's to choose, or that the plan has resolved."""
    asked, resolved = spec.params.config.get("fabric") or {}, spec.resolved
    decided: dict[str, Any] = {
        "accelerator": resolved.accelerator,
        "devices": resolved.devices,
        "num_nodes": resolved.num_nodes,
    }
    if not isinstance(asked.get("strategy"), Mapping):
        decided["strategy"] = "auto" if resolved.strategy == "single_device" else resolved.strategy
    if not has_precision_plugin(asked.get("plugins")):
        decided["precision"] = resolved.precision
    return decided


def join(fabric: RankFabric, post: Post) -> None:
    """Take our places in a Fabric that was just built."""
    fabric.post = post
    fabric._loggers = [*fabric._loggers, FabricLogging(post)]


def run(fabric: RankFabric, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, float]:
    """Call the user's function, and take the numbers that it returns for metrics."""
    fabric.launch()
    fabric.post.reporter.pace.begin("fit", 0)
    returned = function(fabric, **kwargs)
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        fabric.post.reporter.warning(
            f"the function returned {type(returned).__name__}; a dict of numbers becomes the metrics"
        )
        return {}
    values = numbers(returned)
    if lost := [str(name) for name in returned if str(name) not in values]:
        fabric.post.reporter.warning(f"no numbers, and so no metrics: {', '.join(lost[:20])}")
    if odd := [name for name, value in values.items() if not math.isfinite(value)]:
        told = ", ".join(f"{name} is {values[name]}" for name in odd[:20])
        fabric.post.reporter.warning(f"returned, but no finite numbers, and so null in the result: {told}")
    return values


def numbers(metrics: Mapping[Any, Any]) -> dict[str, float]:
    """Those of `metrics` that are single numbers."""
    found = {}
    for name, value in metrics.items():
        item = value.item() if hasattr(value, "item") and getattr(value, "size", None) and _single(value) else value
        if isinstance(item, int | float):
            with contextlib.suppress(OverflowError):  # an integer beyond all floats
                found[str(name)] = float(item)
    return found


def _single(value: Any) -> bool:
    return bool((value.numel() if hasattr(value, "numel") else value.size) == 1)
