"""What rank 0 says of a training that came to its end: the summary, and where it comes from."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning
import torch

from workers.training import outputs
from workers.training.conductor_post import Post
from workers.training.spec import RankSpec


def summary_of(
    post: Post,
    metrics: Mapping[str, float],
    steps: int,
    *,
    epochs: int | None = None,
    predictions: outputs.Columns | None = None,
    best: Path | None = None,
) -> dict[str, Any]:
    """What becomes `result.json`. Writes the tables."""
    spec, folder, table = post.spec, Path(post.spec.folder), post.table
    assert table is not None
    table.flush()
    outputs.write_tables(folder, predictions)
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*.ckpt") if not path.name.startswith(".")]
    summary: dict[str, Any] = {
        "metrics": {**table.last, **metrics},
        "epochs": epochs,
        "steps": steps,
        "world_size": spec.world_size,
        "resolved": spec.resolved.model_dump(mode="json"),
        "checkpoints": sorted(found),
        "best": best.relative_to(folder).as_posix() if best else None,
    }
    if predictions is not None:
        rows = len(next(iter(predictions.values()), ()))
        summary["predictions"] = {"rows": rows, "columns": list(predictions)}
    return summary


def provenance_of(spec: RankSpec, seconds: Mapping[str, float]) -> dict[str, Any]:
    """seconds: of each phase."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "lightning": lightning.__version__}
    resolved = spec.resolved
    return {
        "implementation": "lightning",
        "versions": {name: str(version) for name, version in versions.items()},
        "hardware": {
            "accelerator": resolved.accelerator,
            "devices": _devices(resolved.accelerator),
            "world_size": spec.world_size,
            "threads": spec.threads,
        },
        "precision": resolved.precision,
        "seed": spec.seed,
        "checkpoint": Path(spec.checkpoint).name if spec.checkpoint else None,
        "seconds": {name: round(each, 3) for name, each in seconds.items()},
    }


def _devices(accelerator: str) -> list[str]:
    """Of this node."""
    if accelerator == "cuda":
        return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return [platform.processor() or platform.machine()]
