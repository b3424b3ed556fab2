"""What the jobs of all kinds have in common: loading series, announcing phases, saying where a result comes from, saving."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.matrix_profile import files
from workers.matrix_profile.distance import Distance as Distance
from workers.matrix_profile.ground import Ground
from workers.matrix_profile.provenance import origin
from workers.matrix_profile.series import Series, load
from workers.matrix_profile.treatment import Treated
from workers.matrix_profile.verify import SEED
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


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


@dataclass(frozen=True)
class Made:
    """How a result was made, for its provenance: by which function, in how many pieces, on series treated how. about: what
    else there is to say of it."""

    function: str
    pieces: int
    treated: Treated
    seeds: dict[str, int] = field(default_factory=dict)
    implementation: str = "stumpy"
    about: dict[str, Any] = field(default_factory=dict)


class Job:
    """One job under way. task: a workers.contract.Task as plain data; its files go into the task's folder."""

    def __init__(self, task: Mapping[str, Any], report: Reporter) -> None:
        self.task, self.report = task, report
        self.params: Mapping[str, Any] = task["params"]
        self.distance, self.ground, self.clock = Distance.of(self.params), Ground.of(task, report), Clock(report)
        self.fallback = (task.get("plan") or {}).get("fallback")
        if self.fallback:
            report.log(
                f"{self.fallback['wanted']} was asked for; running on {self.ground.backend} instead: "
                f"{self.fallback['reason']}"
            )

    def phase(self, name: str) -> Any:
        return self.clock.phase(name)

    def series(self, *names: str) -> list[Series]:
        """The series of these parameters, in order; those not sent are left out."""
        sources = self.task["sources"]
        found = [load(source) for name in names for source in sources.get(name) or []]
        for each in found:
            self.report.log(f"{each.name}: {len(each.values):,} values")
        return found

    def windows(self, series: Series, m: int) -> Windows:
        """Raises InvalidInput where the window does not fit."""
        self.report.log(f"{series.name}: {series.windows(m):,} windows of {m}")
        return Windows(series.values, m)

    def provenance(self, made: Made) -> dict[str, Any]:
        return (
            origin()
            | self.ground.shares()
            | {
                "backend": self.ground.backend,
                "fallback": self.fallback,
                "implementation": made.implementation,
                "function": made.function,
                "pieces": made.pieces,
                "device": (self.task.get("plan") or {}).get("device", "cpu"),
                "devices": list(self.task.get("devices_of_worker") or ()),
                "treatment": made.treated.described,
                "seeds": {"verification": SEED} | made.seeds,
            }
            | made.about
        )

    def finish(self, made: Made, said: dict[str, Any], sheet: files.Sheet) -> dict[str, Any]:
        """Save the result. Returns {"summary", "provenance", "artifacts"}, all JSON-able."""
        checked, provenance = said["verification"], self.provenance(made)
        self.report.log(
            f"{made.function} took {self.clock.seconds['computing']:.2f} s in {made.pieces} piece(s); checked "
            f"{checked['rows_checked']} rows, recomputed {checked['rows_recomputed']}"
        )
        with self.phase("saving"):
            about = {"provenance": provenance | {"seconds": dict(self.clock.seconds)}, "summary": said}
            artifacts = files.save(sheet, about, Path(self.task["folder"]))
        return {"summary": said, "provenance": provenance | {"seconds": self.clock.seconds}, "artifacts": artifacts}
