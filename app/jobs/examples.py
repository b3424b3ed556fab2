"""Named requests that run as they stand: the docs page sends the first of them with one click, and a test sends them all."""

import math
from typing import Any

# Two heartbeats of the same shape in a slow wave, and one that is not like them: a motif and a discord in 60 values.
_WAVE = [round(math.sin(i / 9) + (1.5 if i in (12, 42) else 0) - (2.0 if i == 28 else 0), 3) for i in range(60)]

_GAP: list[Any] = [*_WAVE[:20], None, None, *_WAVE[22:]]

MATRIX_PROFILE: dict[str, dict[str, Any]] = {
    "self_join": {
        "summary": "Matrix profile of values sent along",
        "value": {"kind": "matrix_profile", "params": {"series": {"values": _WAVE}, "window": 8}},
    },
    "missing_values": {
        "summary": "The same with missing values and labels",
        "value": {
            "kind": "matrix_profile",
            "params": {"series": {"values": _GAP}, "window": 8},
            "labels": {"example": "missing-values"},
        },
    },
    "ab_join": {
        "summary": "AB-join: each window's nearest neighbour in another series",
        "value": {
            "kind": "matrix_profile",
            "params": {"series": {"values": _WAVE[:40]}, "against": {"values": _WAVE[20:]}, "window": 8},
        },
    },
    "top_k": {
        "summary": "The three nearest neighbours of each window",
        "value": {"kind": "matrix_profile", "params": {"series": {"values": _WAVE}, "window": 8, "k": 3}},
    },
    "p_norm": {
        "summary": "Not normalised, Manhattan distance",
        "value": {
            "kind": "matrix_profile",
            "params": {"series": {"values": _WAVE}, "window": 8, "normalize": False, "p": 1.0},
            "execution": {"backend": "cpu"},
            "priority": 5,
        },
    },
}

BATCH: dict[str, dict[str, Any]] = {
    "two": {
        "summary": "Two jobs, both or none",
        "value": {"jobs": [MATRIX_PROFILE["self_join"]["value"], MATRIX_PROFILE["top_k"]["value"]]},
    }
}
