"""Making a process ready to compute at once: every kernel we serve, compiled, or loaded from Numba's disk cache.

The caller has set workers.environment.compute_environment() before numpy was first imported. Running a parallel kernel
starts Numba's threads (NUMBA_NUM_THREADS of them, idle in C, holding no lock); a forked child starts its own.
"""

import importlib
import time
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import stumpy
from stumpy import cache

from workers.matrix_profile.profile import Floats
from workers.matrix_profile.run import run
from workers.matrix_profile.through_stumpy import ClientHere
from workers.reporting import Silent

ODD: Final = np.array([584.0, -11.0, 23.0, 79.0, 1001.0, 0.0, -19.0])
ODD_PROFILE: Final = np.array(
    [0.11633857113691416, 2.694073918063438, 3.0000926340485923, 2.694073918063438, 0.11633857113691416]
)
ODD_INDICES: Final = (4, 3, 0, 1, 0)
"""The example of STUMPY's documentation, window 3."""


class WrongAnswer(ArithmeticError):
    """STUMPY computes here, and not what it should."""


def warm() -> None:
    """Run each variant once on a few samples: 25 s with an empty disk cache, about a second with a full one."""
    for module, name in cache.get_njit_funcs():
        getattr(importlib.import_module(f"stumpy.{module}"), name).enable_caching()
    a, b = np.random.default_rng(0).standard_normal((2, 64))
    client = ClientHere(2, Silent())
    for k in (1, 3):
        stumpy.stump(a, 8, k=k)
        stumpy.stump(a, 8, T_B=b, ignore_trivial=False, k=k)
        stumpy.stumped(client, a, 8, k=k)
    with TemporaryDirectory() as folder:  # the first file of each format costs as much as a profile
        run(_a_task(a, folder), Silent())
    for p in (1.0, 2.0, 3.0):
        stumpy.aamp(a, 8, p=p)
        stumpy.aamp(a, 8, T_B=b, ignore_trivial=False, p=p)
        stumpy.aamped(client, a, 8, p=p)


def _a_task(values: Floats, folder: str) -> dict[str, Any]:
    source = {"name": "warm", "values": values.tolist()}
    return {"params": {"window": 8}, "sources": {"series": source}, "folder": folder}


def known_answer() -> None:
    """Raise WrongAnswer unless `stump` gives the documented profile of the documented example."""
    found = stumpy.stump(ODD, 3)
    distances, indices = np.asarray(found[:, 0], dtype=np.float64), tuple(int(index) for index in found[:, 1])
    if indices != ODD_INDICES or not np.allclose(distances, ODD_PROFILE, rtol=0, atol=1e-6):
        raise WrongAnswer(f"stump gave {distances.tolist()}, {indices} for {ODD.tolist()}, window 3")


def measure(length: int = 4096, window: int = 50) -> float:
    """Cells of the distance matrix `stump` fills a second, on this process's threads and a random walk."""
    walk = np.random.default_rng(0).standard_normal(length).cumsum()
    windows = length - window + 1
    started = time.perf_counter()
    stumpy.stump(walk, window)
    return windows * windows / 2 / (time.perf_counter() - started)
