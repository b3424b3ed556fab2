"""One table of what Tidemill can run: kind → its params, STUMPY's function for each backend, how big it is, how it is run.

Planning, capabilities, validation and the documentation all read this table; adding a kind is one entry.
"""

from collections.abc import Callable, Mapping
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
from workers.sizes import (
    Lengths,
    consensus_bytes,
    consensus_cells,
    matrix_profile_bytes,
    matrix_profile_cells,
    mpdist_bytes,
    mpdist_cells,
    multidimensional_bytes,
    multidimensional_cells,
    pan_bytes,
    pan_cells,
    tiled_consensus_bytes,
    tiled_mpdist_bytes,
    tiled_mpdist_cells,
    tiled_pan_bytes,
    tiled_profile_bytes,
)


@dataclass(frozen=True)
class Functions:
    """STUMPY's names: for the z-normalised distance, and for the p-norm."""

    normalised: str
    p_norm: str

    def pick(self, normalize: bool) -> str:
        return self.normalised if normalize else self.p_norm


@dataclass(frozen=True, kw_only=True)
class Computation:
    """How large a job of a kind is for whoever computes it."""

    kernels: Functions
    """The measured speeds that its seconds are estimated from: names in a worker's `speed`, without `_cells_per_second`."""
    cells: Callable[[Any, Lengths], float]
    """Entries of distance matrices that must be computed."""
    peak_bytes: Callable[[Any, Lengths, int], int]
    """Memory of the computing process beyond the interpreter, given its threads."""


CHECKPOINT: Final = "tiles.checkpoint"
"""What an attempt keeps of its tiles, in its folder."""

PROFILE_KERNELS: Final = Functions("matrix_profile", "p_norm_profile")
TILE_KERNELS: Final = Functions("tiles", "p_norm_tiles")


def _nothing(params: Any) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Tiles(Computation):
    """What our own kernel computes of a kind (`workers.matrix_profile.tiles`): on CPUs, z-normalised or with p = 2."""

    kernels: Functions = TILE_KERNELS
    function: str
    """Its name in a plan, without `tiles.`."""
    with_another: str | None = None
    """The same where the job has a second series `against` the first."""
    beyond: Callable[[Any], str | None] = _nothing
    """Why it does not compute a job with these parameters, as half a sentence; None where it does."""

    def obstacle(self, params: Any) -> str | None:
        if not params.normalize and params.p != 2:
            return f"tiles compute the p-norm for p = 2 alone, and p is {params.p:g}"
        return self.beyond(params)

    @property
    def names(self) -> list[str]:
        return [f"tiles.{each}" for each in (self.function, self.with_another) if each]

    def name(self, params: Any) -> str:
        other = self.with_another if getattr(params, "against", None) is not None else None
        return f"tiles.{other or self.function}"


@dataclass(frozen=True, kw_only=True)
class Operation(Computation):
    """One kind of job; as a computation, STUMPY's."""

    title: str
    params: type[Message]
    series: tuple[str, ...]
    """The parameters that name series, in order; each is one reference or several."""
    functions: Mapping[str, Functions]
    """backend → STUMPY's functions."""
    run: str
    """What a forked child calls with the task and a reporter, as `module:function`."""
    tiles: Tiles | None = None
    """None where there is no kernel of ours for it."""


def _several_neighbours(params: MatrixProfileParams) -> str | None:
    return None if params.k == 1 else f"tiles find each window's nearest neighbour alone, and k is {params.k}"


def _approximation(params: PanProfileParams) -> str | None:
    if params.percentage >= 1:
        return None
    return f"tiles are exact, and an approximation was asked for (percentage {params.percentage:g})"


def _on_all(cpu: Functions, cluster: Functions, cuda: Functions | None) -> dict[str, Functions]:
    backends = {"cpu": cpu, "dask": cluster, "ray": cluster}
    return backends if cuda is None else {**backends, "cuda": cuda}


OPERATIONS: Final[Mapping[str, Operation]] = {
    "matrix_profile": Operation(
        title="Matrix profile",
        params=MatrixProfileParams,
        series=("series", "against"),
        functions=_on_all(
            Functions("stump", "aamp"), Functions("stumped", "aamped"), Functions("gpu_stump", "gpu_aamp")
        ),
        kernels=PROFILE_KERNELS,
        cells=matrix_profile_cells,
        peak_bytes=matrix_profile_bytes,
        run="workers.matrix_profile.run:run",
        tiles=Tiles(
            function="self_join",
            with_another="ab_join",
            cells=matrix_profile_cells,
            peak_bytes=tiled_profile_bytes,
            beyond=_several_neighbours,
        ),
    ),
    "multidimensional_profile": Operation(
        title="Multidimensional profile",
        params=MultidimensionalProfileParams,
        series=("series",),
        functions=_on_all(Functions("mstump", "maamp"), Functions("mstumped", "maamped"), None),
        kernels=Functions("multidimensional_profile", "multidimensional_p_norm_profile"),
        cells=multidimensional_cells,
        peak_bytes=multidimensional_bytes,
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
        cells=mpdist_cells,
        peak_bytes=mpdist_bytes,
        run="workers.matrix_profile.mpdist:run",
        tiles=Tiles(function="mpdist", cells=tiled_mpdist_cells, peak_bytes=tiled_mpdist_bytes),
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
        cells=consensus_cells,
        peak_bytes=consensus_bytes,
        run="workers.matrix_profile.consensus:run",
        tiles=Tiles(function="consensus_motif", cells=consensus_cells, peak_bytes=tiled_consensus_bytes),
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
        cells=pan_cells,
        peak_bytes=pan_bytes,
        run="workers.matrix_profile.pan:run",
        tiles=Tiles(function="pan_profile", cells=pan_cells, peak_bytes=tiled_pan_bytes, beyond=_approximation),
    ),
}
"""The kinds that compute a profile. (`probe`, made by the server itself, has no functions, no size and no row here.)"""
