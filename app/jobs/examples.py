"""Named requests that run as they stand: the docs page sends the first of them with one click, and a test sends them all."""

import math
from typing import Any, Final

# Two heartbeats of the same shape in a slow wave, and one that is not like them: a motif and a discord in 60 values.
_WAVE = [round(math.sin(i / 9) + (1.5 if i in (12, 42) else 0) - (2.0 if i == 28 else 0), 3) for i in range(60)]

_GAP: list[Any] = [*_WAVE[:20], None, None, *_WAVE[22:]]

# A saw that beats with it, and a wave that does not.
_SAW = [round((i % 30) / 15 - 1 + (1.0 if i in (12, 42) else 0), 3) for i in range(60)]
_OTHER = [round(math.cos(i / 4), 3) for i in range(60)]

# Five weeks of hours, with days and a slow rise in them.
_HOURS = [round(math.sin(i * math.tau / 24) + i / 500 + 0.1 * math.sin(i * 1.7), 3) for i in range(840)]

Examples = dict[str, dict[str, Any]]


def _job(kind: str, summary: str, params: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"summary": summary, "value": {"kind": kind, "params": params, **fields}}


def _sent(*series: list[Any]) -> list[dict[str, Any]]:
    return [{"values": values} for values in series]


JOBS: Final[Examples] = {
    "self_join": _job(
        "matrix_profile", "Matrix profile of values sent along", {"series": {"values": _WAVE}, "window": 8}
    ),
    "missing_values": _job(
        "matrix_profile",
        "The same with missing values and labels",
        {"series": {"values": _GAP}, "window": 8},
        labels={"example": "missing-values"},
    ),
    "ab_join": _job(
        "matrix_profile",
        "AB-join: each window's nearest neighbour in another series",
        {"series": {"values": _WAVE[:40]}, "against": {"values": _WAVE[20:]}, "window": 8},
    ),
    "top_k": _job(
        "matrix_profile",
        "The three nearest neighbours of each window",
        {"series": {"values": _WAVE}, "window": 8, "k": 3},
    ),
    "p_norm": _job(
        "matrix_profile",
        "Not normalised, Manhattan distance",
        {"series": {"values": _WAVE}, "window": 8, "normalize": False, "p": 1.0},
        execution={"backend": "cpu"},
        priority=5,
    ),
    "multidimensional": _job(
        "multidimensional_profile",
        "Multidimensional profile of three series",
        {"series": _sent(_WAVE, _SAW, _OTHER), "window": 8},
    ),
    "multidimensional_include": _job(
        "multidimensional_profile",
        "The same, each row with the first series among its dimensions",
        {"series": _sent(_WAVE, _SAW, _OTHER), "window": 8, "include": [0]},
    ),
    "mpdist": _job(
        "mpdist",
        "MPdist: how alike two series are",
        {"a": {"values": _WAVE[:40]}, "b": {"values": _SAW}, "window": 8, "percentage": 0.1},
    ),
    "consensus_motif": _job(
        "consensus_motif",
        "Consensus motif: what three series have in common",
        {"series": _sent(_WAVE, _SAW[:50], _OTHER), "window": 8},
    ),
    "pan_profile": _job(
        "pan_profile",
        "Pan matrix profile: windows of 4, 8, 12 and 16 values",
        {"series": {"values": _WAVE}, "min_window": 4, "max_window": 16, "step": 4},
    ),
    "pan_profile_approximate": _job(
        "pan_profile",
        "The same, from a quarter of the distances",
        {
            "series": {"values": _WAVE},
            "min_window": 4,
            "max_window": 16,
            "step": 4,
            "percentage": 0.25,
            "pre_scrump": True,
        },
    ),
    "training": _job(
        "training",
        "Train a forecaster on hours sent along: a day ahead from the two days before",
        {
            "config": {
                "seed_everything": 1,
                "trainer": {"accelerator": "cpu", "max_epochs": 3},
                "model": {
                    "class_path": "workers.training.models.Forecaster",
                    "init_args": {"horizon": 24, "season": 24},
                },
                "data": {
                    "class_path": "workers.training.data.SeriesWindows",
                    "init_args": {"series": {"values": _HOURS}, "context": 48},
                },
            }
        },
    ),
    "training_two_ranks": _job(
        "training",
        "Two processes that train one model, with a class of Lightning's own",
        {
            "config": {
                "trainer": {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "max_epochs": 2},
                "model": {"class_path": "lightning.pytorch.demos.boring_classes.BoringModel"},
                "data": {"class_path": "lightning.pytorch.demos.boring_classes.BoringDataModule"},
            }
        },
    ),
    "training_fabric": _job(
        "training",
        "A training loop of your own choosing, under Fabric",
        {
            "mode": "fabric",
            "config": {
                "fabric": {"accelerator": "cpu", "devices": 1, "precision": "32-true"},
                "function": {
                    "call_path": "workers.training.loops.fit",
                    "kwargs": {"series": {"values": _HOURS}, "context": 48, "horizon": 24, "epochs": 2},
                },
            },
        },
    ),
}
"""Some for every kind; the first is what a newcomer sends."""

BATCH: Final[Examples] = {
    "two": {
        "summary": "Two jobs, both or none",
        "value": {"jobs": [JOBS["self_join"]["value"], JOBS["top_k"]["value"]]},
    }
}
