"""One matrix profile, from task to files."""

from typing import Any

import numpy as np

from workers.matrix_profile import results, sheets, through_stumpy
from workers.matrix_profile.definition import Measure
from workers.matrix_profile.doubt import candidates
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.verify import verify
from workers.reporting import Reporter


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the profile `task` (a workers.contract.Task as plain data) asks for; its files go into the task's folder.

    Returns {"summary", "provenance", "artifacts"}, all JSON-able. Raises InvalidInput where the window does not fit.
    """
    job = Job(task, report)
    window, k, normalize = int(job.params["window"]), int(job.params.get("k", 1)), job.distance.normalize
    with job.phase("loading"):
        series = job.series("series", "against")
        self_join = len(series) == 1
        measure = job.distance.measure(*(job.windows(each, window) for each in series))
    with job.phase("computing"):
        treated = job.distance.treat(series)
        a, b = treated.series[0], None if self_join else treated.series[1]
        done = through_stumpy.compute(a, b, window, normalize=normalize, p=job.distance.p, k=k, ground=job.ground)
        profile = done.profile
        profile.distances = treated.distances(profile.distances)
    with job.phase("verifying"):
        checked = verify(profile, measure, self_join=self_join, seconds=done.seconds, report=report)
    _remark_few(measure, k, report, self_join=self_join)
    said = results.summary(profile, series[0].times_us, series[-1].times_us) | {"verification": checked}
    sheet = sheets.matrix_profile(profile, window, series[0].times_us)
    return job.finish(Made(done.function, done.pieces, treated), said, sheet)


def _remark_few(measure: Measure, k: int, report: Reporter, *, self_join: bool) -> None:
    """Say how many windows have fewer neighbours than asked for. (Those with none were counted before the job was accepted.)"""
    there = candidates(measure, self_join=self_join)[measure.a.whole]
    if few := int(np.count_nonzero((there > 0) & (there < k))):
        report.warning(f"{few} windows have fewer than {k} neighbours", windows=few)
