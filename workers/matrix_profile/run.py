"""One matrix profile from task to files, with STUMPY on this process's threads."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workers.matrix_profile import files, results, through_stumpy
from workers.matrix_profile.definition import Measure, Shapes
from workers.matrix_profile.doubt import candidates
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.provenance import origin
from workers.matrix_profile.series import Series, load
from workers.matrix_profile.treatment import treat
from workers.matrix_profile.verify import SEED, verify
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


def run(task: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """Compute the profile `task` (a workers.contract.Task as plain data) asks for; its files go into the task's folder.

    Returns {"summary", "provenance", "artifacts"}, all JSON-able. Raises InvalidInput where the window does not fit.
    """
    asked, clock, plan = Asked.of(task["params"]), Clock(report), task.get("plan") or {}
    if fallback := plan.get("fallback"):
        report.log(f"{fallback['wanted']} was asked for; running on {plan['backend']} instead: {fallback['reason']}")
    with clock.phase("loading"):
        series = load(task["sources"]["series"])
        against = load(task["sources"]["against"]) if task["sources"].get("against") else None
        measure = asked.measure(series, against)
        report.log(f"{series.name}: {len(series.values):,} values, {len(measure.a):,} windows of {asked.window}")
    with clock.phase("computing"):
        done, described = _compute(asked, series, against, report)
    with clock.phase("verifying"):
        checked = verify(done.profile, measure, self_join=against is None, seconds=done.seconds, report=report)
    _remark_few(measure, asked, report, self_join=against is None)
    provenance = origin() | {
        "backend": plan.get("backend", "cpu"),
        "fallback": fallback,
        "implementation": "stumpy",
        "function": done.function,
        "pieces": done.pieces,
        "treatment": described,
        "seeds": {"verification": SEED},
    }
    report.log(
        f"{done.function} took {clock.seconds['computing']:.2f} s in {done.pieces} piece(s); checked "
        f"{checked['rows_checked']} rows, recomputed {checked['rows_recomputed']}"
    )
    with clock.phase("saving"):
        said = results.summary(done.profile, series.times_us, (against or series).times_us) | {"verification": checked}
        times = None if series.times_us is None else series.times_us[: done.profile.windows]
        about = {"provenance": provenance | {"seconds": dict(clock.seconds)}, "summary": said}
        artifacts = files.save(files.Result(done.profile, asked.window, times, about), Path(task["folder"]))
    return {"summary": said, "provenance": provenance | {"seconds": clock.seconds}, "artifacts": artifacts}


@dataclass(frozen=True)
class Asked:
    """What the user asked for, without the series."""

    window: int
    normalize: bool
    p: float
    k: int

    @classmethod
    def of(cls, params: dict[str, Any]) -> "Asked":
        return cls(
            int(params["window"]),
            bool(params.get("normalize", True)),
            float(params.get("p", 2.0)),
            int(params.get("k", 1)),
        )

    def measure(self, series: Series, against: Series | None) -> Measure:
        """The distance as defined, on the data as they came."""
        for each in (series, against):
            if each is not None:
                each.windows(self.window)
        a = Windows(series.values, self.window)
        b = a if against is None else Windows(against.values, self.window)
        return Shapes(a, b) if self.normalize else Norms(a, b, self.p)


@dataclass
class Clock:
    """Announces phases and keeps how long each took, in seconds."""

    report: Reporter
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.report.phase(name)
        started = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - started, 6)


def _compute(asked: Asked, series: Series, against: Series | None, report: Reporter) -> tuple[Any, dict[str, Any]]:
    treated = treat(series.values, against.values if against else None, normalize=asked.normalize, p=asked.p)
    done = through_stumpy.compute(
        treated.a, treated.b, asked.window, normalize=asked.normalize, p=asked.p, k=asked.k, report=report
    )
    done.profile.distances = np.ldexp(done.profile.distances, treated.exponent)
    return done, treated.described


def _remark_few(measure: Measure, asked: Asked, report: Reporter, *, self_join: bool) -> None:
    """Say how many windows have fewer neighbours than asked for. (Those with none were counted before the job was accepted.)"""
    there = candidates(measure, self_join=self_join)[measure.a.whole]
    if few := int(np.count_nonzero((there > 0) & (there < asked.k))):
        report.warning(f"{few} windows have fewer than {asked.k} neighbours", windows=few)
