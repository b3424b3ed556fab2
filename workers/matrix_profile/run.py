"""One matrix profile, from task to files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workers.matrix_profile import results, sheets, through_stumpy
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.doubt import candidates
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.profile import Profile
from workers.matrix_profile.series import Series
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.check import check
from workers.matrix_profile.tiles.checkpoint import Store
from workers.matrix_profile.tiles.grid import CELLS_PER_SECOND
from workers.matrix_profile.tiles.join import join
from workers.matrix_profile.verify import verify
from workers.operations import CHECKPOINT
from workers.reporting import Reporter


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the profile `task` (a workers.contract.Task as plain data) asks for; its files go into the task's folder.

    Returns {"summary", "provenance", "artifacts"}, all JSON-able. Raises InvalidInput where the window does not fit.
    """
    job = Job(task, report)
    window, k = int(job.params["window"]), int(job.params.get("k", 1))
    with job.phase("loading"):
        series = job.series("series", "against")
        self_join = len(series) == 1
        measure = job.distance.measure(*(job.windows(each, window) for each in series))
    profile, made, checked = (_in_tiles if job.ground.tiled else _by_stumpy)(job, series, measure, window, k)
    _remark_few(measure, k, report, self_join=self_join)
    said = results.summary(profile, series[0].times_us, series[-1].times_us) | {"verification": checked}
    result = job.finish(made, said, sheets.matrix_profile(profile, window, series[0].times_us))
    store_of(task).path.unlink(missing_ok=True)
    return result


def store_of(task: Mapping[str, Any]) -> Store:
    """Where a job keeps what it has computed of its tiles, and where its earlier attempts did."""
    return Store(Path(task["folder"]) / CHECKPOINT, [Path(each) / CHECKPOINT for each in task.get("earlier") or ()])


def _in_tiles(
    job: Job, series: list[Series], measure: Measure, window: int, k: int
) -> tuple[Profile, Made, dict[str, Any]]:
    """By our own kernel, which goes on from where an earlier attempt came to."""
    with job.phase("computing"):
        treated = scaled([each.values for each in series], normalize=job.distance.normalize)
        a, b = treated.joined
        problem = Problem(a, b, window, job.distance.normalize, both=False)
        joined = join(problem, job.ground.hands(), job.report, store_of(job.task), threads=job.ground.threads)
        profile = joined.profile
        profile.distances = treated.distances(profile.distances)
    with job.phase("verifying"):
        seconds = joined.cells / CELLS_PER_SECOND
        pairs = joined.pairs if job.distance.normalize else None  # scaled together, a p-norm's pairs are other numbers
        checked = check(
            profile,
            measure,
            self_join=b is None,
            seconds=seconds,
            report=job.report,
            threads=job.ground.threads,
            pairs=pairs,
        )
    about = {"tiles": joined.tiles, "tiles_resumed": joined.resumed, "careful_cells": joined.careful_cells}
    function = "tiles.self_join" if b is None else "tiles.ab_join"
    return profile, Made(function, joined.tiles, treated, implementation="tiles", about=about), checked


def _by_stumpy(
    job: Job, series: list[Series], measure: Measure, window: int, k: int
) -> tuple[Profile, Made, dict[str, Any]]:
    with job.phase("computing"):
        treated = job.distance.treat(series)
        a, b = treated.joined
        normalize, p = job.distance.normalize, job.distance.p
        done = through_stumpy.compute(a, b, window, normalize=normalize, p=p, k=k, ground=job.ground)
        profile = done.profile
        profile.distances = treated.distances(profile.distances)
    with job.phase("verifying"):
        checked = verify(profile, measure, self_join=b is None, seconds=done.seconds, report=job.report)
    return profile, Made(done.function, done.pieces, treated), checked


def _remark_few(measure: Measure, k: int, report: Reporter, *, self_join: bool) -> None:
    """Say how many windows have fewer neighbours than asked for. (Those with none were counted before the job was accepted.)"""
    there = candidates(measure, self_join=self_join)[measure.a.whole]
    if few := int(np.count_nonzero((there > 0) & (there < k))):
        report.warning(f"{few} windows have fewer than {k} neighbours", windows=few)
