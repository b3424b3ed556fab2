"""One table of what Tidemill can run: kind → its params, STUMPY's function for each backend, how big it is, how it is run.

Planning, capabilities, validation and the documentation all read this table; adding a kind is one entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from workers.contract import MatrixProfileParams, Message


@dataclass(frozen=True)
class Functions:
    """STUMPY's names: for the z-normalised distance, and for the p-norm."""

    normalised: str
    p_norm: str

    def pick(self, normalize: bool) -> str:
        return self.normalised if normalize else self.p_norm


@dataclass(frozen=True)
class Size:
    """How big a job is: the windows of its series and, for an AB-join, of the other one."""

    windows: int
    windows_against: int | None
    window: int
    k: int


@dataclass(frozen=True)
class Operation:
    """One kind of job."""

    title: str
    params: type[Message]
    functions: Mapping[str, Functions]
    """backend → STUMPY's functions."""
    absent: Mapping[str, str]
    """backend → why this release cannot run the kind there, whatever the hardware."""
    cells: Callable[[Size], float]
    """Entries of the distance matrix that must be computed."""
    peak_bytes: Callable[[Size, int], int]
    """Memory of the computing process beyond the interpreter, given its threads."""
    run: str
    """What a forked child calls with the task and a reporter, as `module:function`."""


def _profile_cells(size: Size) -> float:
    if size.windows_against is None:
        return size.windows * (size.windows - 1) / 2
    return float(size.windows) * size.windows_against


def _profile_bytes(size: Size, threads: int) -> int:
    # STUMPY's per-thread profiles (16k+32 bytes a window), its dozen float64 arrays per series, the object array of its answer;
    # the checks of the result take up to 256 MiB on top.
    rows = max(size.windows, size.windows_against or 0)
    return rows * (threads * (16 * size.k + 32) + 12 * 8 + (2 * size.k + 2) * 40) + (256 << 20)


OPERATIONS: Final[Mapping[str, Operation]] = {
    "matrix_profile": Operation(
        title="Matrix profile",
        params=MatrixProfileParams,
        functions={
            "cpu": Functions("stump", "aamp"),
            "dask": Functions("stumped", "aamped"),
            "ray": Functions("stumped", "aamped"),
            "cuda": Functions("gpu_stump", "gpu_aamp"),
        },
        absent={
            "dask": "this release runs a matrix profile on one worker and does not spread it over the cluster yet",
            "ray": "this release has no Ray engine yet",
            "cuda": "this release runs no GPU function yet",
        },
        cells=_profile_cells,
        peak_bytes=_profile_bytes,
        run="workers.matrix_profile.run:run",
    ),
}
