"""Making a process ready to compute at once: every kernel we serve, compiled, or loaded from Numba's disk cache.

The caller has set workers.environment.compute_environment() before numpy was first imported. Running a parallel kernel
starts Numba's threads (NUMBA_NUM_THREADS of them, idle in C, holding no lock); a forked child starts its own.
"""

import importlib
import time
import warnings
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from workers.contract import call_by_name
from workers.matrix_profile.ground import ClientHere
from workers.matrix_profile.tiles import self_join
from workers.matrix_profile.tiles import warm as tiles
from workers.operations import OPERATIONS
from workers.reporting import Silent
from workers.stumpys import compiled, stumpy

ONE, TWO, THREE = (np.random.default_rng(seed).standard_normal(64).round(3).tolist() for seed in range(3))
SMALL_JOBS: Final[list[tuple[str, dict[str, list[list[float]]], dict[str, Any]]]] = [
    ("matrix_profile", {"series": [ONE]}, {}),
    ("multidimensional_profile", {"series": [ONE, TWO]}, {"include": [1]}),
    ("multidimensional_profile", {"series": [ONE, TWO]}, {}),
    ("consensus_motif", {"series": [ONE, TWO, THREE]}, {}),
    ("pan_profile", {"series": [ONE]}, {"min_window": 8, "max_window": 8, "percentage": 0.5, "pre_scrump": True}),
]
"""A job for each of STUMPY's kernels, z-normalised and not."""
TILED_JOBS: Final[list[tuple[str, dict[str, list[list[float]]], dict[str, Any]]]] = [
    ("matrix_profile", {"series": [ONE]}, {}),
    ("mpdist", {"a": [ONE], "b": [TWO]}, {}),
    ("consensus_motif", {"series": [ONE, TWO, THREE]}, {}),
    ("pan_profile", {"series": [ONE]}, {"min_window": 8, "max_window": 8}),
]


DISTANCES: Final[dict[str, dict[str, Any]]] = {"normalised": {}, "p_norm": {"normalize": False, "p": 3.0}}
"""Each has kernels of its own."""
TILED: Final[dict[str, dict[str, Any]]] = {"normalised": {}, "p_norm": {"normalize": False}}
IN_PIECES: Final = {"normalised": "stumped", "p_norm": "aamped"}


def warm(*distances: str) -> None:
    """Run each kernel of these distances, or of all, once on a few samples: a minute with an empty disk cache, seconds with a full one."""
    for module, name in compiled.get_njit_funcs():
        getattr(importlib.import_module(f"stumpy.{module}"), name).enable_caching()
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for distance in distances or DISTANCES:
            for k in (1, 2):  # merging the results of pieces; those of several neighbours lie otherwise in memory
                getattr(stumpy, IN_PIECES[distance])(ClientHere(2, Silent()), np.array(ONE), 8, k=k)
            for kind, series, params in SMALL_JOBS:  # to the end: the first file of a format takes as long as a profile
                call_by_name(OPERATIONS[kind].run, a_task(kind, series, params | DISTANCES[distance], folder), Silent())
            for kind, series, params in TILED_JOBS:
                task = a_task(kind, series, params | TILED[distance], folder) | {"plan": {"implementation": "tiles"}}
                call_by_name(OPERATIONS[kind].run, task, Silent())
        tiles.warm()


def a_task(kind: str, series: dict[str, list[list[float]]], params: dict[str, Any], folder: str) -> dict[str, Any]:
    """A small job with its values inline, window 8."""
    sources = {name: [{"name": name, "values": values} for values in several] for name, several in series.items()}
    params = params if kind == "pan_profile" else {"window": 8} | params
    return {"kind": kind, "params": params, "sources": sources, "folder": folder}


TILED_SAMPLES: Final = 16384
"""Our kernel is measured on more: it is faster, and gains on the large jobs whose time is worth estimating."""


def measure(samples: int = 4096) -> dict[str, float]:
    """Entries of the distance matrix each kind of kernel fills a second, on this process's threads and random walks of
    `samples`, for the slower ones fewer. Takes about half a second on one thread."""
    walks = np.random.default_rng(0).standard_normal((3, max(samples, TILED_SAMPLES))).cumsum(axis=1)

    def speed(call: Callable[[Any, int], Any], samples: int, dimensions: int = 0) -> float:
        series = walks[:dimensions, :samples] if dimensions else walks[0, :samples]
        window = min(50, samples // 4)
        windows = samples - window + 1
        started = time.perf_counter()
        call(series, window)
        return (dimensions * windows**2 if dimensions else windows**2 / 2) / (time.perf_counter() - started)

    return {
        "tiles_cells_per_second": speed(self_join, TILED_SAMPLES),
        "p_norm_tiles_cells_per_second": speed(partial(self_join, normalize=False), TILED_SAMPLES),
        "matrix_profile_cells_per_second": speed(stumpy.stump, samples),
        "p_norm_profile_cells_per_second": speed(stumpy.aamp, samples // 2),
        "multidimensional_profile_cells_per_second": speed(stumpy.mstump, samples // 8, 3),
        "multidimensional_p_norm_profile_cells_per_second": speed(stumpy.maamp, samples // 16, 3),
    }
