"""A server that trains, and words for asking it to."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.house import Api, House, running

TOYS = Path(__file__).with_name("toys.py")


def house_on(engine: str, home: Path, **settings: str) -> House:
    """A server with two workers of one thread each, that takes users' code."""
    environment = {
        "TIDEMILL_ENGINE": engine,
        "TIDEMILL_WORKERS": "2",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true",
        **settings,
    }
    return House(home, environment)


class Trainers:
    """A client that trains."""

    def __init__(self, house: House, engine: str) -> None:
        self.house, self.engine = house, engine
        self._api = house.api()
        self.source = self.upload({"toys.py": TOYS.read_text()})

    @property
    def api(self) -> Api:
        """A client of the server as it is now: it has another address after a start."""
        if str(self._api.base_url).rstrip("/") != self.house.url.rstrip("/"):
            self._api.close()
            self._api = self.house.api()
        return self._api

    def owner_of(self, job: str) -> psutil.Process:
        """The process of the worker that runs a job."""
        started = [
            event["data"]
            for event in self.api.events(job)
            if event["type"] == "state" and event["data"]["to"] == "running"
        ]
        engines = self.api.get("/capabilities").json()["engines"]
        assert started[-1]["worker"] in {worker["id"] for engine in engines for worker in engine["workers"]}
        with sqlite3.connect(f"file:{self.house.home / 'tidemill.db'}?mode=ro", uri=True) as db:
            (facts,) = db.execute("SELECT facts FROM worker WHERE id = ?", [started[-1]["worker"]]).fetchone()
        return psutil.Process(json.loads(facts)["pid"])

    def upload(self, files: dict[str, str]) -> str:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        answer = self.api.post("/sources", files={"file": ("toys.zip", packed.getvalue(), "application/zip")})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["id"])

    def body(
        self, model: str = "Steady", *, trainer: dict[str, Any] | None = None, data: Any = None, **about: Any
    ) -> dict[str, Any]:
        """A training job of one of the toys. `init`: arguments of the model; `params` and `config`: what comes on top there."""
        told = {
            "accelerator": "cpu",
            "max_epochs": 2,
            "log_every_n_steps": 1,
            "num_sanity_val_steps": 0,
            **(trainer or {}),
        }
        config = {
            "seed_everything": 1,
            "trainer": told,
            "model": {"class_path": f"toys.{model}", "init_args": about.pop("init", {})},
            "data": data or {"class_path": "toys.Line"},
            **about.pop("config", {}),
        }
        params = {"config": config, "source": self.source, **about.pop("params", {})}
        return {"kind": "training", "params": params, **about}

    def fabric(self, fabric: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        config = {"fabric": {"accelerator": "cpu", **fabric}, "function": {"call_path": "toys.train", "kwargs": kwargs}}
        return {"kind": "training", "params": {"mode": "fabric", "config": config, "source": self.source}}

    def start(self, body: dict[str, Any]) -> str:
        return str(self.api.submit(body)["id"])

    def run(self, body: dict[str, Any], state: str = "succeeded", seconds: float = 90) -> dict[str, Any]:
        """The job once it has ended, and that in `state`."""
        job = self.api.until(self.start(body), "succeeded", "failed", "cancelled", seconds=seconds)
        assert job["state"] == state, (job["error"], self.api.get(f"/jobs/{job['id']}/logs").text)
        return job

    def artifacts(self, job: str) -> list[str]:
        return [each["name"] for each in self.api.get(f"/jobs/{job}/artifacts?limit=200").json()["items"]]

    def artifact(self, job: str, name: str) -> bytes:
        answer = self.api.get(f"/jobs/{job}/artifacts/{name}")
        assert answer.status_code == 200, answer.text
        return answer.content

    def metric(self, job: str, name: str) -> list[tuple[int, float]]:
        """(step, value) of a metric's events, in their order."""
        told = [event["data"] for event in self.api.events(job) if event["type"] == "metric"]
        return [(data["step"], data["value"]) for data in told if data["name"] == name]


@pytest.fixture(scope="module")
def trainers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainers]:
    """A server of the module's `ENGINE`."""
    engine = request.module.ENGINE
    with running(house_on(engine, tmp_path_factory.mktemp(engine) / "home")) as house:
        trainers = Trainers(house, engine)
        yield trainers
        trainers.api.close()
