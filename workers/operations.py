"""One table of what Tidemill can run: kind → its params, STUMPY's function for each backend, how big it is, how it is run.

Planning, capabilities, validation and the documentation all read this table; adding a kind is one entry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workers.contract import (
    ConsensusMotifParams,
    MatrixProfileParams,
    Message,
    MpdistParams,
    MultidimensionalProfileParams,
    PanProfileParams,
)

Lengths = Sequence[int]
"""Samples of each series of a job, in the order of `Operation.series`."""

MIB: Final = 1 << 20
OBJECT_BYTES: Final = 40
"""A cell of STUMPY's answer: a pointer, and the Python number it points to."""
CHECK_BYTES: Final = 256 * MIB
"""What the checks of a result take on top."""


@dataclass(frozen=True)
class Functions:
    """STUMPY's names: for the z-normalised distance, and for the p-norm."""

    normalised: str
    p_norm: str

    def pick(self, normalize: bool) -> str:
        return self.normalised if normalize else self.p_norm


@dataclass(frozen=True)
class Operation:
    """One kind of job."""

    title: str
    params: type[Message]
    series: tuple[str, ...]
    """The parameters that name series, in order; each is one reference or several."""
    functions: Mapping[str, Functions]
    """backend → STUMPY's functions."""
    kernels: Functions
    """The measured speeds that its seconds are estimated from: names in a worker's `speed`, without `_cells_per_second`."""
    cells: Callable[[Any, Lengths], float]
    """Entries of distance matrices that must be computed."""
    peak_bytes: Callable[[Any, Lengths, int], int]
    """Memory of the computing process beyond the interpreter, given its threads."""
    run: str
    """What a forked child calls with the task and a reporter, as `module:function`."""


def windows(length: int, window: int) -> int:
    return max(0, length - window + 1)


def largest_pan_window(length: int) -> int:
    """The longest window a pan profile visits: `stumpy.core.get_max_window_size`. A longer one has hardly a neighbour
    that is not trivial."""
    return length - (length + 3) // 5 - 1


def pan_windows(params: PanProfileParams, length: int) -> range:
    """The windows of a pan profile, ascending."""
    last = params.max_window if params.max_window is not None else max(params.min_window, largest_pan_window(length))
    return range(params.min_window, last + 1, max(1, params.step))


def _self_join_cells(rows: int) -> float:
    return rows * (rows - 1) / 2


def _profile_bytes(rows: int, threads: int, k: int = 1) -> int:
    # STUMPY's per-thread profiles (16k+32 bytes a window), its dozen float64 arrays per series, the object array of its answer.
    return rows * (threads * (16 * k + 32) + 12 * 8 + (2 * k + 2) * OBJECT_BYTES) + CHECK_BYTES


def _matrix_profile_cells(params: MatrixProfileParams, lengths: Lengths) -> float:
    rows = [windows(length, params.window) for length in lengths]
    return _self_join_cells(rows[0]) if len(rows) == 1 else float(rows[0]) * rows[1]


def _matrix_profile_bytes(params: MatrixProfileParams, lengths: Lengths, threads: int) -> int:
    return _profile_bytes(max(windows(length, params.window) for length in lengths), threads, params.k)


def _multidimensional_cells(params: MultidimensionalProfileParams, lengths: Lengths) -> float:
    return len(lengths) * float(windows(lengths[0], params.window)) ** 2


def _multidimensional_bytes(params: MultidimensionalProfileParams, lengths: Lengths, threads: int) -> int:
    # Some twenty float64 arrays of (d, l): products even and odd, means, deviations, the profile, its pieces.
    return len(lengths) * windows(lengths[0], params.window) * 8 * 20 + CHECK_BYTES


def _mpdist_cells(params: MpdistParams, lengths: Lengths) -> float:
    return 2.0 * windows(lengths[0], params.window) * windows(lengths[1], params.window)


def _mpdist_bytes(params: MpdistParams, lengths: Lengths, threads: int) -> int:
    return _profile_bytes(max(windows(length, params.window) for length in lengths), threads)


def _consensus_cells(params: ConsensusMotifParams, lengths: Lengths) -> float:
    rows = [windows(length, params.window) for length in lengths]
    return float(sum(a * b for a, b in zip(rows, [*rows[1:], rows[0]], strict=True)))


def _consensus_bytes(params: ConsensusMotifParams, lengths: Lengths, threads: int) -> int:
    rows = [windows(length, params.window) for length in lengths]
    return _profile_bytes(max(rows), threads) + 6 * 8 * sum(rows)


def _pan_cells(params: PanProfileParams, lengths: Lengths) -> float:
    # The sum of r(r - 1)/2 over the rows r of every window, in closed form: a long series has a hundred thousand windows.
    n, step = len(pan_windows(params, lengths[0])), max(1, params.step)
    most = windows(lengths[0], params.min_window)
    rows = n * most - step * n * (n - 1) // 2
    squares = n * most**2 - most * step * n * (n - 1) + step**2 * (n - 1) * n * (2 * n - 1) // 6
    return min(1.0, max(params.percentage, 0.0)) * (squares - rows) / 2


def _pan_bytes(params: PanProfileParams, lengths: Lengths, threads: int) -> int:
    # STUMPY allocates (windows, n) float64 at once, and the raw profiles are copied out of it.
    visited = pan_windows(params, lengths[0])
    return 2 * 8 * len(visited) * lengths[0] + _profile_bytes(windows(lengths[0], params.min_window), threads)


def _on_all(cpu: Functions, cluster: Functions, cuda: Functions | None) -> dict[str, Functions]:
    backends = {"cpu": cpu, "dask": cluster, "ray": cluster}
    return backends if cuda is None else {**backends, "cuda": cuda}


PROFILE_KERNELS: Final = Functions("matrix_profile", "p_norm_profile")

OPERATIONS: Final[Mapping[str, Operation]] = {
    "matrix_profile": Operation(
        title="Matrix profile",
        params=MatrixProfileParams,
        series=("series", "against"),
        functions=_on_all(
            Functions("stump", "aamp"), Functions("stumped", "aamped"), Functions("gpu_stump", "gpu_aamp")
        ),
        kernels=PROFILE_KERNELS,
        cells=_matrix_profile_cells,
        peak_bytes=_matrix_profile_bytes,
        run="workers.matrix_profile.run:run",
    ),
    "multidimensional_profile": Operation(
        title="Multidimensional profile",
        params=MultidimensionalProfileParams,
        series=("series",),
        functions=_on_all(Functions("mstump", "maamp"), Functions("mstumped", "maamped"), None),
        kernels=Functions("multidimensional_profile", "multidimensional_p_norm_profile"),
        cells=_multidimensional_cells,
        peak_bytes=_multidimensional_bytes,
        run="workers.matrix_profile.multidimensional:run",
    ),
    "mpdist": Operation(
        title="MPdist",
        params=MpdistParams,
        series=("a", "b"),
        functions=_on_all(
            Functions("mpdist", "aampdist"),
            Functions("mpdisted", "aampdisted"),
            Functions("gpu_mpdist", "gpu_aampdist"),
        ),
        kernels=PROFILE_KERNELS,
        cells=_mpdist_cells,
        peak_bytes=_mpdist_bytes,
        run="workers.matrix_profile.mpdist:run",
    ),
    "consensus_motif": Operation(
        title="Consensus motif",
        params=ConsensusMotifParams,
        series=("series",),
        functions=_on_all(
            Functions("ostinato", "aamp_ostinato"),
            Functions("ostinatoed", "aamp_ostinatoed"),
            Functions("gpu_ostinato", "gpu_aamp_ostinato"),
        ),
        kernels=PROFILE_KERNELS,
        cells=_consensus_cells,
        peak_bytes=_consensus_bytes,
        run="workers.matrix_profile.consensus:run",
    ),
    "pan_profile": Operation(
        title="Pan matrix profile",
        params=PanProfileParams,
        series=("series",),
        functions=_on_all(
            Functions("stimp", "aamp_stimp"),
            Functions("stimped", "aamp_stimped"),
            Functions("gpu_stimp", "gpu_aamp_stimp"),
        ),
        kernels=PROFILE_KERNELS,
        cells=_pan_cells,
        peak_bytes=_pan_bytes,
        run="workers.matrix_profile.pan:run",
    ),
}
"""The kinds that compute a profile. (`probe`, made by the server itself, has no functions, no size and no row here.)"""
