"""One multidimensional matrix profile, from task to files."""

import math
from functools import partial
from typing import Any, Final

import numpy as np

from workers.failures import InvalidInput
from workers.matrix_profile import multiverify, sheets
from workers.matrix_profile.base import injected
from workers.matrix_profile.dimensions import Dimensions, MultiProfile
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.ground import PIECE_SECONDS, hearing, stumpys, threads
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.results import moments
from workers.reporting import Reporter
from workers.stumpys import _get_multi_p_norm

CELLS_PER_SECOND: Final = {True: 1.3e7, False: 2.8e6}
"""normalize → entries of all dimensions a second, on one thread."""

PIECES_BYTES: Final = 256 << 20
"""What the first rows of all pieces, 2·d·l float64 each, may take together."""


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the multidimensional profile `task` asks for. Returns {"summary", "provenance", "artifacts"}."""
    job = Job(task, report)
    m = int(job.params["window"])
    with job.phase("loading"):
        series = job.series("series")
        space = _space(job, [job.windows(each, m) for each in series])
    with job.phase("computing"):
        treated = job.distance.treat(series)
        profile, function, pieces, seconds = _compute(job, np.stack(treated.series), m)
        profile.distances = treated.distances(profile.distances)
    with job.phase("verifying"):
        checked = multiverify.verify(profile, space, treated.series, seconds=seconds, report=report)
    _remark_constant(space, [each.name for each in series], report, normalize=job.distance.normalize)
    said = _summary(profile, space, series[0].times_us) | {"verification": checked}
    sheet = sheets.multidimensional(profile.distances, profile.indices, m, series[0].times_us)
    return job.finish(Made(function, pieces, treated), said, sheet)


def _space(job: Job, windows: list[Any]) -> Dimensions:
    lengths = sorted({len(each) for each in windows})
    if len(lengths) > 1:
        raise InvalidInput(f"the dimensions have different lengths, from {lengths[0]} to {lengths[-1]} windows")
    include = np.array(list(dict.fromkeys(job.params.get("include") or [])), dtype=np.int64)
    if len(include) and include.max() >= len(windows):
        raise InvalidInput(f"there is no dimension {include.max()} to include; there are {len(windows)}, from 0")
    return Dimensions(
        [job.distance.measure(each) for each in windows], include, bool(job.params.get("discords", False))
    )


def _compute(job: Job, T: Floats, m: int) -> tuple[MultiProfile, str, int, float]:
    """The profile of T (d, n), STUMPY's function, its pieces, and the seconds it was expected to take."""
    ground, normalize, params = job.ground, job.distance.normalize, job.params
    seconds, pieces = plan(job, T, m)
    in_pieces = ground.in_pieces(pieces)
    name = ground.function("multidimensional_profile", normalize=normalize, in_pieces=in_pieces)
    keywords: dict[str, Any] = {"normalize": True} if normalize else {"p": job.distance.p}
    if include := list(dict.fromkeys(params.get("include") or [])):
        keywords["include"] = np.array(include, dtype=np.int64)
    keywords["discords"] = bool(params.get("discords", False))
    # STUMPY begins each piece of `maamped` with sums of squares, whatever p is.
    right_p = partial(_get_multi_p_norm, p=job.distance.p)
    with hearing(job.report), injected("maamped", _get_multi_p_norm=right_p):
        found = stumpys(name)(*ground.first(pieces), T, m, **keywords)
    if not in_pieces:
        job.report.progress(1, 1, "pieces", 0.0)
    return MultiProfile(np.array(found.P_), np.array(found.I_)), f"stumpy.{name}", pieces, seconds


def plan(job: Job, T: Floats, m: int) -> tuple[float, int]:
    """Expected seconds, and pieces: about half a second each, but no more than their first rows leave memory for."""
    d, rows = T.shape[0], T.shape[1] - m + 1
    seconds = d * rows**2 / (CELLS_PER_SECOND[job.distance.normalize] * threads())
    fit = max(2, PIECES_BYTES // (2 * 8 * d * rows))
    pieces = job.ground.pieces(seconds, PIECE_SECONDS, max(1, min(fit, rows // 2)))
    return seconds, math.ceil(rows / math.ceil(rows / pieces))


def _remark_constant(space: Dimensions, names: list[str], report: Reporter, *, normalize: bool) -> None:
    """Two constant windows are alike by definition, so a dead dimension is always the nearest."""
    for measure, name in zip(space.measures, names, strict=True):
        if normalize and measure.a.constant.sum() > measure.a.m:
            report.warning(
                f"{measure.a.constant.sum()} windows of {name!r} are constant, and all alike: the profile of the "
                "fewest dimensions is 0 there",
                series=name,
            )


def _summary(profile: MultiProfile, space: Dimensions, times_us: Ints | None) -> dict[str, Any]:
    """Motif and discord for each number of dimensions, null where no window has a neighbour; `members` are the
    dimensions that the pair takes, counted from 0."""
    return {
        "dimensions": len(profile.distances),
        "windows": space.windows,
        "missing_windows": [int(np.count_nonzero(~np.isfinite(each))) for each in profile.distances],
        "motif": [_extreme(profile, space, number, times_us, least=True) for number in range(len(profile.distances))],
        "discord": [
            _extreme(profile, space, number, times_us, least=False) for number in range(len(profile.distances))
        ],
    }


def _extreme(
    profile: MultiProfile, space: Dimensions, number: int, times_us: Ints | None, *, least: bool
) -> dict[str, Any] | None:
    distances = profile.distances[number]
    found = np.isfinite(distances)
    if not found.any():
        return None
    index = int(distances.argmin() if least else np.where(found, distances, -np.inf).argmax())
    neighbor = int(profile.indices[number, index])
    members = sorted(space.first(index, neighbor)[: number + 1])
    said: dict[str, Any] = {"dimensions": number + 1, "members": members, "index": index}
    said |= {"neighbor": neighbor, "distance": float(distances[index])}
    if times_us is not None:
        said["at"], said["neighbor_at"] = moments(times_us[[index, neighbor]])
    return said
