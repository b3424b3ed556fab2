"""MPdist: the k-th smallest value of the two joins between two series, by our own kernel or by STUMPY's function out of
verified joins."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.matrix_profile import base as bases
from workers.matrix_profile import sheets
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.ground import hearing, stumpys
from workers.matrix_profile.profile import Floats
from workers.matrix_profile.run import store_of
from workers.matrix_profile.series import Series
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.check import check
from workers.matrix_profile.tiles.grid import CELLS_PER_SECOND
from workers.matrix_profile.tiles.join import join
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


@dataclass(frozen=True)
class Choice:
    """Which of the sorted values of both joins is the distance: the k-th, counted from 0, or one after a share of the
    samples. `window` samples make a window."""

    window: int
    percentage: float
    k: int | None

    def among(self, lengths: list[int]) -> int:
        """The k of series of these lengths; the last value where there are not so many."""
        wanted = math.ceil(self.percentage * sum(lengths)) if self.k is None else self.k
        return min(wanted, sum(length - self.window + 1 for length in lengths) - 1)


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the MPdist `task` asks for (Gharghabi et al., ICDM 2018). Returns {"summary", "provenance", "artifacts"}."""
    job = Job(task, report)
    asked = Choice(int(job.params["window"]), float(job.params.get("percentage", 0.05)), job.params.get("k"))
    with job.phase("loading"):
        series = job.series("a", "b")
        rows = [each.windows(asked.window) for each in series]
    found, made, checked = (_in_tiles if job.ground.tiled else _by_stumpy)(job, series, asked)
    value = found if np.isfinite(found) else None
    k = asked.among([len(each.values) for each in series])
    said = {"distance": value, "k": k, "values": sum(rows), "verification": checked.as_dict()}
    if value is None:
        report.warning("the series have no whole windows in common; there is no distance between them")
    result = job.finish(made, said, sheets.values({"distance": value}))
    store_of(task).path.unlink(missing_ok=True)
    return result


def _in_tiles(job: Job, series: list[Series], asked: Choice) -> tuple[float, Made, bases.Checked]:
    """One pass over all pairs of windows gives both joins."""
    threads, lengths = job.ground.threads, [len(each.values) for each in series]
    with job.phase("computing"):
        treated = scaled([each.values for each in series], normalize=job.distance.normalize)
        a, b = treated.series
        problem = Problem(a, b, asked.window, job.distance.normalize)
        joined = join(problem, job.ground.hands(), job.report, store_of(job.task), threads=threads)
    with job.phase("verifying"):
        measure = job.distance.measure(*(Windows(each.values, asked.window) for each in series))
        checked, values = bases.Checked(), []
        for profile, its in ((joined.profile, measure), (joined.other, measure.transposed())):
            assert profile is not None  # a join of two series has both
            profile.distances = treated.distances(profile.distances)
            seconds = joined.cells / CELLS_PER_SECOND
            checked.add(check(profile, its, self_join=False, seconds=seconds, report=job.report, threads=threads))
            values.append(profile.distances[:, 0])
        found = smallest(np.concatenate(values), asked.among(lengths))
    about = {"tiles": joined.tiles, "tiles_resumed": joined.resumed, "careful_cells": joined.careful_cells}
    return found, Made("tiles.mpdist", joined.tiles, treated, implementation="tiles", about=about), checked


def smallest(values: Floats, k: int) -> float:
    """The k-th smallest value, counted from 0; where it is not finite, the largest finite one before it, or inf."""
    there = np.partition(values, k)[: k + 1]
    return float(np.max(there[np.isfinite(there)], initial=-np.inf)) if np.isfinite(there).any() else math.inf


def _by_stumpy(job: Job, series: list[Series], asked: Choice) -> tuple[float, Made, bases.Checked]:
    m, normalize = asked.window, job.distance.normalize
    with job.phase("computing"):
        treated, name = job.distance.treat(series), job.ground.function("mpdist", normalize=normalize)
        base = bases.Base(series, treated, job.distance, job.ground, takes_client=job.ground.spreads)
        base.ground = bases.onward(job.ground, bases.spans(base, [(0, 1, m), (1, 0, m)]))
        found = treated.distances(np.asarray(_call(name, base, asked, job)))
        base.require_calls(2, name)
    return float(found), Made(f"stumpy.{name}", base.pieces, treated), base.checked


def _call(name: str, base: bases.Base, asked: Choice, job: Job) -> float:
    function, normalize = stumpys(name), job.distance.normalize
    keywords: dict[str, Any] = {"percentage": asked.percentage, "k": asked.k}
    keywords |= {"normalize": True} if normalize else {"p": job.distance.p}
    client = (job.ground.client(1),) if job.ground.spreads else ()
    seat = {job.ground.function("matrix_profile", normalize=normalize): base}
    with hearing(job.report), bases.injected(bases.home_of(function), **seat):
        return float(function(*client, *base.treated.series, asked.window, **keywords))
