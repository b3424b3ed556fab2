"""A real server in its own process, as users have it, and a client that speaks of jobs rather than of HTTP."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.processes import below, words

READY = "Tidemill is ready at "
START_SECONDS = 120
THRIFTY = {"TIDEMILL_TRAINING_WARM": "false"}
"""Loading torch takes each worker some seconds, and most tests never train."""


@dataclass
class House:
    """One server on one HOME. `start` and `end` as often as a test wants."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    port: int = 0
    process: subprocess.Popen[str] | None = None
    url: str = ""

    def start(self) -> "House":
        """Start the server and wait until it is ready."""
        self.log = open(self.home.parent / f"{self.home.name}.log", "a")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "--port", str(self.port), "--home", str(self.home), *self.arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, **THRIFTY, **self.environment},
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(READY):
                self.url = line.removeprefix(READY).strip()
                return self
        raise AssertionError(f"the server ended with {self.process.wait()}:\n{self.words()}")

    def end(self) -> int:
        """SIGTERM, and its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._ended(60)

    def kill(self) -> None:
        """kill -9, as a power cut does."""
        assert self.process is not None
        self.process.kill()
        self._ended(10)

    def _ended(self, seconds: float) -> int:
        assert self.process is not None
        code = self.process.wait(timeout=seconds)
        if self.process.stdout:
            self.process.stdout.close()
        self.log.close()
        return code

    def family(self) -> list[psutil.Process]:
        """Every process that the server started, directly or not."""
        assert self.process is not None
        return below(self.process.pid)

    def workers(self) -> list[psutil.Process]:
        return [each for each in self.family() if words(each)[2:4] == ["workers", "dask"]]

    def words(self) -> str:
        """What the server printed on its standard error."""
        return Path(self.log.name).read_text()

    def api(self) -> "Api":
        return Api(self.url)


class Api(httpx.Client):
    """An HTTP client of one server."""

    def __init__(self, url: str) -> None:
        super().__init__(base_url=url, timeout=60, trust_env=False)

    def job(self, job_id: str, wait: int = 0) -> dict[str, Any]:
        answer = self.get(f"/jobs/{job_id}", headers={"Prefer": f"wait={wait}"} if wait else {})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        answer = self.post("/jobs", json=body, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def run(self, **params: Any) -> dict[str, Any]:
        """Submit a matrix profile, wait for its success, and return its whole result."""
        job = self.submit({"kind": "matrix_profile", "params": params}, Prefer="wait=60")
        assert job["state"] == "succeeded", job
        result = self.get(job["links"]["result"])
        assert result.status_code == 200, result.text
        return {**result.json(), "job": job}

    def until(self, job_id: str, *states: str, seconds: float = 30) -> dict[str, Any]:
        """Look at a job until it is in one of `states`."""
        return eventually(lambda: (job := self.job(job_id)) and job["state"] in states and job, seconds)

    def events(self, job_id: str) -> list[dict[str, Any]]:
        items, after = [], 0
        while page := self.get(f"/jobs/{job_id}/events", params={"after": after, "limit": 200}).json()["items"]:
            items += page
            after = page[-1]["seq"]
        return items


@dataclass
class BothEngines:
    """A server with a Dask cluster and a Ray cluster, of two workers each, and Numba's CUDA simulator."""

    house: House
    when_ready: list[dict[str, Any]] = field(default_factory=list)
    """What it said of its engines as soon as it was ready."""

    @classmethod
    def at(cls, home: Path) -> "BothEngines":
        environment = {
            "TIDEMILL_ENGINE": "dask,ray",
            "TIDEMILL_WORKERS": "2",
            "TIDEMILL_WORKER_THREADS": "1",
            "TIDEMILL_CUDA_SIMULATOR": "true",
        }
        return cls(House(home, environment))

    def note(self) -> None:
        with self.house.api() as api:
            self.when_ready = engines_of(api)

    @contextlib.contextmanager
    def whole(self) -> Iterator[Api]:
        """A client of it, once all its workers are there. It is started again where a test has ended it."""
        assert self.house.process is not None
        if self.house.process.poll() is not None:
            self.house.start()
            self.note()
        with self.house.api() as api:
            eventually(lambda: [len(engine["workers"]) for engine in engines_of(api)] == [2, 2], 60)
            yield api


def engines_of(api: Api) -> list[dict[str, Any]]:
    return api.get("/capabilities").json()["engines"]


def listening(processes: Sequence[psutil.Process]) -> list[str]:
    """The address of each socket that these processes listen on. One that ends meanwhile listens no more."""
    found: list[str] = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [c.laddr.ip for c in process.net_connections("inet") if c.status == "LISTEN"]
    return found


def eventually(look: Any, seconds: float = 20, pause: float = 0.05) -> Any:
    """What `look` returns once it is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(pause)
    return seen


@contextlib.contextmanager
def running(house: House) -> Iterator[House]:
    """A started server that is gone afterwards, whatever the test did to it."""
    house.start()
    try:
        yield house
    finally:
        assert house.process is not None
        if house.process.poll() is None:
            house.end()


def long_series(n: int = 60_000) -> bytes:
    """A `.npy` whose matrix profile takes many seconds: a real computation to interrupt."""
    import io

    import numpy as np

    out = io.BytesIO()
    np.save(out, np.random.default_rng(0).standard_normal(n).cumsum())
    return out.getvalue()
