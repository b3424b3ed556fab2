"""An outside Dask cluster whose two workers do not have the server's storage: files go over HTTP."""

import contextlib
import json
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.chaos.acts import dask_scheduler, free_port, process
from tests.house import Api, House, eventually, running
from workers.environment import cache_folder


@dataclass
class Far:
    """A server, a scheduler, and workers that may be ended and started."""

    scheduler: str
    house: House
    stack: contextlib.ExitStack
    folder: Path
    cache: Path
    """Where the workers keep what they fetched."""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    storage: str = "none"
    """What the next worker is told of it."""
    told: str = "none"
    """What they all were told."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TIDEMILL_STORAGE": self.storage,
            "TIDEMILL_CACHE_DIR": str(self.cache),
            "TIDEMILL_CACHE_BYTES": str(64 << 20),
        }

    def join(self) -> subprocess.Popen[bytes]:
        name = f"worker-{len(self.workers)}"
        arguments = ["workers", "dask", "--scheduler", self.scheduler, "--server", self.house.url, "--threads", "1"]
        worker = self.stack.enter_context(process(arguments, self.folder / f"{name}.log", **self.environment))
        self.workers.append(worker)
        return worker

    def use(self, storage: str, but_one: str | None = None) -> None:
        """Have workers that are told this of the server's storage, and one of them something else."""
        wanted = storage if but_one is None else f"{storage} but {but_one}"
        if wanted != self.told:
            self.told = wanted
            alive = [worker for worker in self.workers if worker.poll() is None]
            for worker in alive:
                worker.send_signal(signal.SIGTERM)
            for worker in alive:
                worker.wait(timeout=30)
            if but_one is not None:
                self.storage = but_one
                self.join()
            self.storage = storage
        self.up()

    def up(self, count: int = 2) -> None:
        """Wait for so many workers; those that have ended are replaced."""
        alive = [each for each in self.workers if each.poll() is None]
        for _ in range(count - len(alive)):
            self.join()
        with self.house.api() as api:
            eventually(lambda: len(workers_of(api)) == count, 90)

    def owner_of(self, job_id: str, node: int = 0) -> psutil.Process:
        """The process of the worker that runs a job, or a node of it."""
        with self.house.api() as api:
            started = [e["data"] for e in api.events(job_id) if e["type"] == "state" and e["data"]["to"] == "running"]
        with sqlite3.connect(f"file:{self.house.home / 'tidemill.db'}?mode=ro", uri=True) as db:
            worker = started[-1]["workers"][node] if "workers" in started[-1] else started[-1]["worker"]
            (facts,) = db.execute("SELECT facts FROM worker WHERE id = ?", [worker]).fetchone()
        return psutil.Process(json.loads(facts)["pid"])

    def words(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("worker-*.log")))


def workers_of(api: Api) -> list[dict[str, object]]:
    return api.get("/capabilities").json()["engines"][0]["workers"]


def cache_in(folder: Path) -> Path:
    """A cache of the workers' own, with the compiled kernels that the installation has."""
    cache = folder / "cache"
    cache.mkdir()
    (cache / "numba").symlink_to(cache_folder() / "numba")
    return cache


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder = tmp_path_factory.mktemp("far")
    with contextlib.ExitStack() as stack:
        scheduler = stack.enter_context(dask_scheduler(folder))
        environment = {"TIDEMILL_DASK_SCHEDULER": scheduler, "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true"}
        house = House(folder / "home", environment, port=free_port())
        house.url = f"http://127.0.0.1:{house.port}"
        far = Far(scheduler, house, stack, folder, cache_in(folder))
        far.join()
        stack.enter_context(running(house))
        yield far


@pytest.fixture
def far(made: Far) -> Far:
    """With its server and both workers up."""
    assert made.house.process is not None
    if made.house.process.poll() is not None:
        made.house.start()
    made.use("none")
    return made
