"""What a training leaves: its result, the metrics or predictions as a table in three formats, the configuration that ran."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.training.metrics import FIXED, read
from workers.training.spec import METRICS, RESULT, RankSpec

CONFIG = "config.yaml"
PREDICTIONS = "predictions.parquet"
MOST_VALUES = 1_000_000
"""Of predictions in the JSON result; more of them are in the other formats alone."""
Columns = Mapping[str, npt.NDArray[Any]]


def write_tables(folder: Path, predictions: Columns | None) -> None:
    """`result.csv`, `.parquet` and `.npz`: the predictions of a job that predicted, and of any other the metrics."""
    table = predictions if predictions is not None else metrics_as_columns(folder / METRICS)
    if not table:
        return
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    arrow = pa.table({name: pa.array(column, from_pandas=predictions is None) for name, column in table.items()})
    pyarrow.parquet.write_table(arrow, folder / "result.parquet")
    pyarrow.csv.write_csv(arrow, folder / "result.csv")
    with open(folder / "result.npz", "wb") as file:
        np.savez_compressed(file, **{_npz_name(name): column for name, column in table.items()})  # type: ignore[arg-type]
    if predictions is not None:
        link(folder / "result.parquet", folder / PREDICTIONS)


def metrics_as_columns(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The table of metrics; NaN where a metric was not logged at a step."""
    rows = list(read(path)) if path.exists() else []
    names = list(dict.fromkeys(name for row in rows for name in row if name not in FIXED))
    if not rows:
        return {}
    return {
        "step": np.array([row["step"] for row in rows], dtype=np.int64),
        "epoch": np.array([-1 if row["epoch"] is None else row["epoch"] for row in rows], dtype=np.int64),
        **{name: np.array([row.get(name, math.nan) for row in rows]) for name in names},
    }


def write_config(spec: RankSpec, config: Mapping[str, Any]) -> None:
    """The whole configuration, with what was resolved in place of what was left open. A Lightning CLI reads it."""
    import yaml  # type: ignore[import-untyped]

    section = "trainer" if spec.params.mode == "trainer" else "fabric"
    asked, resolved = dict(config.get(section) or {}), spec.resolved
    ran = {name: getattr(resolved, name) for name in ("accelerator", "devices", "num_nodes", "strategy", "precision")}
    for name in ("strategy", "precision"):
        # An object that was given stays; only its name is in `resolved`.
        if isinstance(asked.get(name), dict) or (name == "precision" and asked.get("plugins")):
            del ran[name]
    if ran.get("strategy") == "single_device":
        ran["strategy"] = "auto"
    told = {**config, "seed_everything": spec.seed, section: asked | ran}
    _write(Path(spec.folder, CONFIG), yaml.safe_dump(told, sort_keys=False))


def write_result(
    folder: Path, summary: Mapping[str, Any], provenance: Mapping[str, Any], predictions: Columns | None
) -> None:
    """The only evidence that a training succeeded: written last, and at once."""
    result = {**summary, "provenance": provenance}
    if predictions is not None and sum(column.size for column in predictions.values()) <= MOST_VALUES:
        result["predictions"] = {
            **summary["predictions"],
            "values": {name: column.tolist() for name, column in predictions.items()},
        }
    _write(folder / RESULT, json.dumps(finite(result), allow_nan=False))


def finite(value: Any) -> Any:
    """JSON knows no NaN."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
    return value


def link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    os.link(source, target)


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _npz_name(name: str) -> str:
    return name.replace("/", "_")
