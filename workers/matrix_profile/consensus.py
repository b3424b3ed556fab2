"""The consensus motif of several series, by our own kernel or by STUMPY's function out of verified joins and distances as
defined."""

import importlib
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from workers.failures import InvalidInput
from workers.matrix_profile import base as bases
from workers.matrix_profile import sheets
from workers.matrix_profile.across import Across, SeriesCore
from workers.matrix_profile.consensus_motif import SAMPLED_WINDOWS, TIE, Motif
from workers.matrix_profile.consensus_tiles import KEPT, Search
from workers.matrix_profile.frame import Job, Made
from workers.matrix_profile.ground import hearing, stumpys
from workers.matrix_profile.profile import Ints
from workers.matrix_profile.results import moments
from workers.matrix_profile.series import Series
from workers.matrix_profile.verify import SEED, Unverifiable
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the consensus motif `task` asks for (Kamgar et al., ICDM 2019): the window whose nearest neighbours in all
    other series are, at worst, the nearest. Returns {"summary", "provenance", "artifacts"}.

    Windows with missing values take no part. Raises InvalidInput where a series has no whole window.
    """
    job = Job(task, report)
    m = int(job.params["window"])
    with job.phase("loading"):
        series = job.series("series")
        windows = _whole_windows(series, m)
    motif, made, checked = (_in_tiles if job.ground.tiled else _by_stumpy)(job, series, windows)
    number, index, at = motif.number, motif.index, [each.times_us for each in series]
    said = {"radius": motif.radius, "series": number, "index": index}
    others = [
        {"series": other, "index": int(motif.neighbors[other]), "distance": float(motif.distances[other])}
        | _at(at[other], int(motif.neighbors[other]))
        for other in range(len(series))
        if other != number
    ]
    summary = said | _at(at[number], index) | {"name": series[number].name, "neighbors": others}
    here = at[number]
    sheet = sheets.values(said, None if here is None else int(here[index]))
    result = job.finish(made, summary | {"verification": checked.as_dict()}, sheet)
    Path(task["folder"], KEPT).unlink(missing_ok=True)
    return result


def _whole_windows(series: list[Series], m: int) -> list[Windows]:
    """The windows of each; there must be two series, and a whole window in each."""
    if len(series) < 2:
        raise InvalidInput("a consensus needs two series or more")
    windows = []
    for each in series:
        each.windows(m)
        windows.append(Windows(each.values, m))
        if not windows[-1].whole.any():
            raise InvalidInput(
                f"there is no consensus: {each.name!r} has no window of {m} samples without missing values; "
                "leave it out, or choose a shorter window"
            )
    return windows


def _in_tiles(job: Job, series: list[Series], windows: list[Windows]) -> tuple[Motif, Made, bases.Checked]:
    search = Search(job, series, windows)
    with job.phase("computing"):
        motif = search.find()
    with job.phase("verifying"):
        search.witness.check(motif)
    about = {"tiles": search.tiles, "tiles_resumed": search.resumed, "careful_cells": search.careful_cells}
    made = Made("tiles.consensus_motif", search.tiles, search.treated, implementation="tiles", about=about)
    return motif, made, search.witness.checked


def _by_stumpy(job: Job, series: list[Series], windows: list[Windows]) -> tuple[Motif, Made, bases.Checked]:
    m, normalize, treated = windows[0].m, job.distance.normalize, job.distance.treat(series)
    base = bases.Base(series, treated, job.distance, job.ground, takes_client=job.ground.spreads)
    with job.phase("computing"):
        base.ground = bases.onward(job.ground, bases.spans(base, _joins(len(series), m)))
        across, name = Across(base, m), job.ground.function("consensus_motif", normalize=normalize)
        radius, number, index = _call(name, across, m, normalize=normalize, job=job)
        base.require_calls(len(series), name)
    with job.phase("verifying"):
        motif = Motif(number, index, *across.neighbors(number, index))
        claimed = float(treated.distances(np.asarray(radius)))
        base.checked.add(_verified(across, number, index, claimed, motif.radius))
    return motif, Made(f"stumpy.{name}", base.pieces, treated), base.checked


def _joins(count: int, m: int) -> list[tuple[int, int | None, int]]:
    """Each series with the next, the last with the first: what STUMPY joins in full."""
    return [(number, (number + 1) % count, m) for number in range(count)]


def _call(name: str, across: Across, m: int, *, normalize: bool, job: Job) -> tuple[float, int, int]:
    function, base = stumpys(name), across.base
    keywords: dict[str, Any] = {"normalize": True} if normalize else {"p": job.distance.p}
    client = (job.ground.client(1),) if job.ground.spreads else ()
    core, where = SeriesCore(across), bases.home_of(function)
    seat = {job.ground.function("matrix_profile", normalize=normalize): base, "core": core}
    with hearing(job.report), _searching(normalize, base, core), bases.injected(where, **seat):
        radius, number, index = function(*client, list(base.treated.series), m, **keywords)
    return float(radius), int(number), int(index)


def _searching(normalize: bool, base: bases.Base, core: SeriesCore) -> AbstractContextManager[None]:
    """STUMPY's inner search, which all backends share, with our distances, and with our base where it is a default."""
    home, search = ("ostinato", "_ostinato") if normalize else ("aamp_ostinato", "_aamp_ostinato")
    inner = getattr(importlib.import_module(f"stumpy.{home}"), search)
    return bases.injected(home, **{"core": core, search: partial(inner, mp_func=base)})


def _verified(across: Across, number: int, index: int, claimed: float, exact: float) -> dict[str, Any]:
    """Compare the claimed radius with the definition, and let no window taken at random have a smaller one."""
    apart = abs(claimed - exact)
    if not np.isfinite(exact) or apart > TIE * exact + across.slack:
        raise Unverifiable(f"the consensus was claimed with radius {claimed!r}, but the definition gives {exact!r}")
    rows = 1
    for other, row in _sample(across, np.random.default_rng(SEED)):
        rows += 1
        found = float(across.neighbors(other, int(row))[0].max())
        if found < exact * (1 - TIE) - across.slack:
            raise Unverifiable(
                f"window {row} of series {other} has a radius of {found!r}, less than the {exact!r} of the claimed "
                f"consensus, window {index} of series {number}"
            )
    return {"rows_checked": rows, "max_abs_difference": apart, "rows_recomputed": 0}


def _sample(across: Across, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Windows at random, and of each series the one nearest to the next series."""
    chosen: list[tuple[int, int]] = [(number, row) for (number, _), (row, _) in across.base.nearest.items()]
    for _ in range(SAMPLED_WINDOWS):
        number = int(rng.integers(len(across.base.series)))
        whole: Ints = np.flatnonzero(across.base.windows(number, across.m).whole)
        chosen.append((number, int(rng.choice(whole))))
    return chosen


def _at(times_us: Ints | None, index: int) -> dict[str, Any]:
    return {} if times_us is None else {"at": moments(times_us[[index]])[0]}
