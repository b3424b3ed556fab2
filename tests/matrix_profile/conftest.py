"""Jobs run in this process, on one thread, with kernels from the disk cache; filled once if it is empty."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workers.contract import call_by_name
from workers.environment import compute_environment
from workers.operations import OPERATIONS

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

    def progress(
        self, done: int, total: int, unit: str, eta_seconds: float | None = None, fraction: float | None = None
    ) -> None:
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
def task(tmp_path):
    """A task on stored series: `task(kind, {name: [values, …]}, times={name: …}, **params)`."""
    import numpy as np

    def source(name: str, values, times) -> dict[str, Any]:
        np.save(tmp_path / f"{name}.npy", np.asarray(values, dtype=np.float64))
        told: dict[str, Any] = {"name": name, "path": str(tmp_path / f"{name}.npy")}
        if times is not None:
            np.save(tmp_path / f"{name}.time.npy", np.asarray(times, dtype=np.int64))
            told["time_path"] = str(tmp_path / f"{name}.time.npy")
        return told

    def make(kind: str, series: dict[str, list], *, times=None, plan=None, **params) -> dict[str, Any]:
        times = times or {}
        sources = {
            name: [source(f"{name}{n or ''}", each, times.get(name)) for n, each in enumerate(several)]
            for name, several in series.items()
        }
        folder = tmp_path / "attempt"
        folder.mkdir(exist_ok=True)
        told = {"attempt": "att_1", "job": "job_1", "kind": kind, "plan": plan or {}, "folder": str(folder)}
        return told | {"params": params, "sources": sources}

    return make


@pytest.fixture
def compute(warm, task):
    """Run one job of any kind: `compute(kind, {name: [values, …]}, **params)`."""
    import numpy as np

    def start(kind: str, series: dict[str, list], **told) -> Done:
        asked, heard = task(kind, series, **told), Heard()
        answer = call_by_name(OPERATIONS[kind].run, asked, heard)
        with np.load(Path(asked["folder"], "result.npz")) as stored:
            return Done(answer, Path(asked["folder"]), heard, dict(stored))

    return start


@pytest.fixture
def job(compute):
    """Run one matrix profile: `job(series, window, against=…, times=…, **params)`."""

    def start(series, window: int, *, against=None, times=None, against_times=None, **params) -> Done:
        named = {"series": [series]} | ({} if against is None else {"against": [against]})
        both = {"series": times, "against": against_times}
        return compute("matrix_profile", named, times=both, window=window, **params)

    return start


@pytest.fixture
def spread(monkeypatch) -> dict[str, Any]:
    """The plan of a job on a Dask cluster of two workers, whose pieces are computed here, one after the other."""
    from workers.matrix_profile.ground import ClientHere
    from workers.spread import client

    monkeypatch.setattr(client, "ClientSpread", ClientHere)
    return {"backend": "dask", "workers": 2}
