"""MPdist: the k-th smallest value of the two joins between two series, made by STUMPY's function out of verified joins."""

import math
from typing import Any

import numpy as np

from workers.matrix_profile import base as bases
from workers.matrix_profile import sheets
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.ground import hearing, stumpys
from workers.reporting import Reporter


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the MPdist `task` asks for (Gharghabi et al., ICDM 2018). Returns {"summary", "provenance", "artifacts"}."""
    job = Job(task, report)
    m, normalize = int(job.params["window"]), job.distance.normalize
    with job.phase("loading"):
        series = job.series("a", "b")
        rows = [series_.windows(m) for series_ in series]
    with job.phase("computing"):
        treated, name = job.distance.treat(series), job.ground.function("mpdist", normalize=normalize)
        base = bases.Base(series, treated, job.distance, job.ground, takes_client=job.ground.spreads)
        base.ground = bases.onward(job.ground, bases.spans(base, [(0, 1, m), (1, 0, m)]))
        percentage, k = float(job.params.get("percentage", 0.05)), job.params.get("k")
        wanted = {"percentage": percentage, "k": k}
        found = treated.distances(np.asarray(_call(name, base, m, wanted, normalize=normalize, job=job)))
        base.require_calls(2, name)
    with job.phase("verifying"):
        k = chosen(percentage, k, [len(each.values) for each in series], rows)
        value = float(found) if np.isfinite(found) else None
        said = {"distance": value, "k": k, "values": sum(rows), "verification": base.checked.as_dict()}
        if value is None:
            report.warning("the series have no whole windows in common; there is no distance between them")
    made = Made(f"stumpy.{name}", base.pieces, treated)
    return job.finish(made, said, sheets.values({"distance": value}))


def _call(name: str, base: bases.Base, m: int, wanted: dict[str, Any], *, normalize: bool, job: Job) -> float:
    function = stumpys(name)
    keywords = wanted | ({"normalize": True} if normalize else {"p": job.distance.p})
    client = (job.ground.client(1),) if job.ground.spreads else ()
    seat = {job.ground.function("matrix_profile", normalize=normalize): base}
    with hearing(job.report), bases.injected(bases.home_of(function), **seat):
        return float(function(*client, *base.treated.series, m, **keywords))


def chosen(percentage: float, k: int | None, lengths: list[int], rows: list[int]) -> int:
    """Which of the sorted values STUMPY takes, counted from 0."""
    wanted = math.ceil(percentage * sum(lengths)) if k is None else k
    return min(wanted, sum(rows) - 1)
