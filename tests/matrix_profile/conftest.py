"""Jobs run in this process, on one thread, with kernels from the disk cache; filled once if it is empty."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workers.environment import compute_environment

if "numba" not in sys.modules:
    os.environ.update(compute_environment(threads=1))


@dataclass
class Heard:
    """A reporter that remembers."""

    phases: list[str] = field(default_factory=list)
    progressed: list[tuple[int, int, str, float | None]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def progress(self, done: int, total: int, unit: str, eta_seconds: float | None = None) -> None:
        self.progressed.append((done, total, unit, eta_seconds))

    def warning(self, message: str, **data: Any) -> None:
        self.warnings.append(message)

    def log(self, message: str) -> None: ...


@dataclass
class Done:
    """What a job left: its answer, its folder, what it said, and the arrays of its result."""

    answer: dict[str, Any]
    folder: Path
    heard: Heard
    arrays: dict[str, Any]

    @property
    def distances(self):
        found = self.arrays["distances"]
        return found if found.ndim == 2 else found[:, None]

    @property
    def indices(self):
        found = self.arrays["indices"]
        return found if found.ndim == 2 else found[:, None]


@pytest.fixture(scope="session")
def warm() -> None:
    from workers.matrix_profile.warm import warm

    warm()


@pytest.fixture
def job(warm, tmp_path):
    """Run one job on stored series: `job(series, window, against=…, times=…, **params)`."""
    import numpy as np

    from workers.matrix_profile.run import run

    def source(name: str, values, times) -> dict[str, Any]:
        np.save(tmp_path / f"{name}.npy", np.asarray(values, dtype=np.float64))
        told: dict[str, Any] = {"name": name, "path": str(tmp_path / f"{name}.npy")}
        if times is not None:
            np.save(tmp_path / f"{name}.time.npy", np.asarray(times, dtype=np.int64))
            told["time_path"] = str(tmp_path / f"{name}.time.npy")
        return told

    def start(series, window: int, *, against=None, times=None, against_times=None, **params) -> Done:
        sources = {"series": source("series", series, times)}
        if against is not None:
            sources["against"] = source("against", against, against_times)
        folder, heard = tmp_path / "attempt", Heard()
        folder.mkdir(exist_ok=True)
        task = {"attempt": "att_1", "job": "job_1", "kind": "matrix_profile", "plan": {}, "folder": str(folder)}
        answer = run(task | {"params": {"window": window, **params}, "sources": sources}, heard)
        with np.load(folder / "result.npz") as stored:
            return Done(answer, folder, heard, dict(stored))

    return start
