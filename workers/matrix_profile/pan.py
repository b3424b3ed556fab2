"""A pan matrix profile: one verified profile for each window, in ascending order, by our own kernel or by STUMPY's object."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from workers.contract import PanProfileParams
from workers.failures import InvalidInput
from workers.matrix_profile import base as bases
from workers.matrix_profile import sheets
from workers.matrix_profile.approximate import ORDER_SEED, Approximation
from workers.matrix_profile.frame import Distance, Job, Made
from workers.matrix_profile.ground import hearing, stumpys
from workers.matrix_profile.pan_tiles import KEPT, Pan
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.results import moments
from workers.matrix_profile.series import Series
from workers.reporting import Reporter
from workers.sizes import pan_windows

SAMPLED_ROWS: Final = 2
"""Rows taken at random for each window; there are many windows."""


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the pan profile `task` asks for (Madrid et al., ICBK 2019). Returns {"summary", "provenance", "artifacts"}.

    With a percentage below 1 each profile is an approximation from above, whose pairs are exact all the same.
    """
    job = Job(task, report)
    exact = float(job.params.get("percentage", 1.0)) >= 1.0
    with job.phase("loading"):
        (series,) = job.series("series")
        lengths = _lengths(job, len(series.values))
        if not np.isfinite(series.values).any():
            raise InvalidInput(f"{series.name!r} has no finite value")
    found, made, checked = (_in_tiles if job.ground.tiled else _by_stumpy)(job, series, lengths)
    said = _summary(lengths, found, series, job.distance)
    said |= {"approximate": not exact, "verification": checked.as_dict()}
    result = job.finish(made, said, sheets.pan_profile(lengths, [row for row, _ in found], series.times_us))
    Path(task["folder"], KEPT).unlink(missing_ok=True)
    return result


Found: TypeAlias = list[tuple[Floats, tuple[int, int]]]
"""For each window length, ascending: its distances, and the window whose neighbour is nearest with that neighbour."""


def _in_tiles(job: Job, series: Series, lengths: Ints) -> tuple[Found, Made, bases.Checked]:
    pan = Pan(job, series, lengths)
    with job.phase("computing"):
        rows = pan.find()
    found = [(rows[m].distances, rows[m].best) for m in lengths.tolist()]
    about = {"tiles": pan.tiles, "tiles_resumed": pan.resumed, "careful_cells": pan.careful_cells}
    made = Made("tiles.pan_profile", pan.tiles, pan.treated, implementation="tiles", about=about)
    return found, made, pan.checked


def _by_stumpy(job: Job, series: Series, lengths: Ints) -> tuple[Found, Made, bases.Checked]:
    exact = float(job.params.get("percentage", 1.0)) >= 1.0
    with job.phase("computing"):
        treated, name = (
            job.distance.treat([series]),
            job.ground.function("pan_profile", normalize=job.distance.normalize),
        )
        base = _Windows([series], treated, job.distance, job.ground, job.ground.spreads, SAMPLED_ROWS)
        base.ground = bases.onward(job.ground, None)
        profiles = _visit(name, base, lengths, exact=exact, job=job)
        base.require_calls(len(lengths), name)
    found = [(treated.distances(profiles[m]), base.nearest[0, m]) for m in lengths.tolist()]
    made = Made(f"stumpy.{name}", base.pieces, treated, {} if exact else {"order": ORDER_SEED})
    return found, made, base.checked


def _lengths(job: Job, samples: int) -> Ints:
    asked = {name: value for name, value in job.params.items() if name in PanProfileParams.model_fields}
    params = PanProfileParams.model_construct(**asked)
    return np.array(pan_windows(params, samples), dtype=np.int64)


class _Windows(bases.Base):
    """One series; STUMPY's object works on a copy of it."""

    def number(self, values: Any) -> int:
        if not np.array_equal(values, self.treated.series[0], equal_nan=True):
            raise bases.Bypassed("STUMPY asked for the profile of another series")
        return 0


def _visit(name: str, base: _Windows, lengths: Ints, *, exact: bool, job: Job) -> dict[int, Floats]:
    """Let STUMPY's object compute all its windows: window length → distances (n-m+1,) in the units of the treated series."""
    function, step, normalize = stumpys(name), int(job.params.get("step", 1)), job.distance.normalize
    client = (job.ground.client(1),) if job.ground.spreads else ()
    keywords: dict[str, Any] = {"normalize": True} if normalize else {"p": job.distance.p}
    if job.ground.backend == "cpu":  # the others are always exact
        pre = "pre_scrump" if normalize else "pre_scraamp"
        keywords |= {
            "percentage": float(job.params.get("percentage", 1.0)),
            pre: bool(job.params.get("pre_scrump", False)),
        }
    seat: dict[str, Any] = {job.ground.function("matrix_profile", normalize=normalize): base}
    if not exact:
        seat["scrump" if normalize else "scraamp"] = _approximation(base)
    with hearing(job.report), bases.injected(bases.home_of(function), **seat):
        pan = function(*client, base.treated.series[0], int(lengths[0]), int(lengths[-1]), step, **keywords)
        if not np.array_equal(np.sort(pan.M_), lengths):
            raise InvalidInput(
                f"windows of {lengths[0]} to {lengths[-1]} samples do not fit into the series: STUMPY would visit "
                f"{pan.M_.min(initial=0)} to {pan.M_.max(initial=0)}"
            )
        started = time.monotonic()
        for done in range(1, len(lengths) + 1):
            pan.update()
            left = (time.monotonic() - started) / done * (len(lengths) - done)
            job.report.progress(done, len(lengths), "windows", left)
    return {int(m): np.asarray(row, dtype=np.float64) for m, row in zip(pan.M_, pan.P_, strict=True)}


def _approximation(base: bases.Base) -> Callable[..., Approximation]:
    """What STUMPY's object calls where it would make a `scrump` or `scraamp`."""

    def make(T: Floats, m: int, **asked: Any) -> Approximation:
        base.number(T)
        pre = asked.get("pre_scrump", asked.get("pre_scraamp", False))
        return Approximation(base, T, m, float(asked["percentage"]), bool(pre))

    return make


def _summary(lengths: Ints, found: Found, series: Series, distance: Distance) -> dict[str, Any]:
    """How many windows, and the pair that is nearest for its length, by the measure of STUMPY's own pan: d / 2√m where
    normalised, else d / (range · m^(1/p)), each between 0 and 1."""
    said: dict[str, Any] = {"windows": len(lengths), "best": None, "normalised_by": "2*sqrt(window)"}
    scale: Floats = np.asarray(2.0 * np.sqrt(lengths))
    if not distance.normalize:
        there = series.values[np.isfinite(series.values)]
        reach = there.max() / 2 - there.min() / 2
        scale = np.asarray(2 * (reach or 1.0) * lengths ** (1 / distance.p))
        said["normalised_by"] = "(max - min) * window**(1/p)"
    relative = np.array([row.min() for row, _ in found]) / scale
    if np.isfinite(relative).any():
        best = int(relative.argmin())
        row, (index, neighbor) = found[best]
        said["best"] = {
            "window": int(lengths[best]),
            "index": index,
            "neighbor": neighbor,
            "distance": float(row[index]),
        }
        said["best"]["normalised_distance"] = float(relative[best])
        if series.times_us is not None:
            said["best"]["at"], said["best"]["neighbor_at"] = moments(series.times_us[[index, neighbor]])
    return said
