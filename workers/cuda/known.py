"""A tiny case with a known answer, for STUMPY's GPU functions, and how fast they are here."""

import time
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numba import cuda

from workers.cuda.job import failures_told, prepare, temporary_files_in
from workers.failures import JobFailure
from workers.stumpys import stumpy

ODD: Final = np.array([584.0, -11.0, 23.0, 79.0, 1001.0, 0.0, -19.0])
"""The series of STUMPY's documentation; the window is 3."""
Z_NORMALISED: Final = (
    0.11633857113691416,
    2.694073918063438,
    3.0000926340485923,
    2.694073918063438,
    0.11633857113691416,
)
P_NORM: Final = (419.2540995625445, 985.3045214551693, 1131.063658685929, 985.3045214551693, 419.2540995625445)


class WrongAnswer(JobFailure):
    """A GPU function computes here, and not what it should."""


def answer(reporter: object) -> int:
    """In a child: raise WrongAnswer unless every visible device gives the known profiles. Returns how many devices did."""
    with failures_told(), TemporaryDirectory() as folder, temporary_files_in(folder):
        prepare()
        devices = len(cuda.gpus)
        for device in range(devices):
            _compare("gpu_stump", stumpy.gpu_stump(ODD, 3, device_id=device), Z_NORMALISED, device)
            _compare("gpu_aamp", stumpy.gpu_aamp(ODD, 3, device_id=device), P_NORM, device)
    return devices


def _compare(name: str, found: Any, truth: tuple[float, ...], device: int) -> None:
    distances = np.asarray(found[:, 0], dtype=np.float64)
    if not np.allclose(distances, truth, rtol=0, atol=1e-6):
        raise WrongAnswer(f"{name} on device {device} gave {distances.tolist()}, and the truth is {list(truth)}")


def measure(length: int, window: int, reporter: object) -> dict[str, float]:
    """In a child: cells of the distance matrix a second on the first device, for a random walk of `length`."""
    walk = np.random.default_rng(0).standard_normal(length).cumsum()
    cells = (length - window + 1) ** 2 / 2
    speed = {}
    with failures_told(), TemporaryDirectory() as folder, temporary_files_in(folder):
        prepare()
        for kernel, function in (("matrix_profile", stumpy.gpu_stump), ("p_norm_profile", stumpy.gpu_aamp)):
            started = time.perf_counter()
            function(walk, window)
            speed[f"gpu_{kernel}_cells_per_second"] = cells / (time.perf_counter() - started)
    return speed
