"""The workers' command as users give it, against a real scheduler and a real server, both of which go and come back."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.acts import computing, ends, free_port, process, submit_long
from tests.house import House, eventually, running
from tests.processes import all_gone, below, children
from workers.contract import VERSION

TOKEN = "a-secret-for-joining"
LATER = "from workers import link; link.VERSION = '999'; from workers.__main__ import main; raise SystemExit(main())"


@dataclass
class Place:
    """A scheduler on a fixed port, a server on it, and the folder where tests leave their words."""

    folder: Path
    house: House
    stack: contextlib.ExitStack
    port: int
    scheduler: subprocess.Popen[bytes] | None = None
    started: int = field(default=0)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def schedule(self) -> None:
        arguments = ["dask", "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self.stack.enter_context(process(arguments, self.folder / "scheduler.log"))

    def unschedule(self) -> None:
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()

    @contextlib.contextmanager
    def command(self, *more: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        self.started += 1
        words = self.folder / f"worker-{self.started}.log"
        told = {"TIDEMILL_JOIN_TOKEN": TOKEN, "TIDEMILL_HEALTH_DIR": str(self.folder / f"health-{self.started}")}
        arguments = ["workers", "dask", "--scheduler", self.address, "--server", self.house.url, "--threads", "1"]
        with process([*arguments, *more], words, **told | environment) as worker:
            yield worker, words

    def up(self, api: Any) -> dict[str, str]:
        """Workers that the server counts on: id → address."""
        (engine,) = api.get("/capabilities").json()["engines"]
        return {worker["id"]: worker["address"] for worker in engine["workers"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("commands")
    with contextlib.ExitStack() as stack:
        house = House(folder / "home", {"TIDEMILL_JOIN_TOKEN": TOKEN}, port=free_port())
        house.url = f"http://127.0.0.1:{house.port}"
        made = Place(folder, house, stack, free_port())
        house.environment["TIDEMILL_DASK_SCHEDULER"] = made.address
        made.schedule()
        # A server is ready once a worker is there.
        with made.command() as (worker, _):
            stack.enter_context(running(house))
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=30) == 0
        yield made


@pytest.fixture
def api(place: Place) -> Iterator[Any]:
    with place.house.api() as api:
        eventually(lambda: not place.up(api), 20)
        yield api


def well(place: Place) -> int:
    """What the health check of the newest command's container answers."""
    environment = {"TIDEMILL_HEALTH_DIR": str(place.folder / f"health-{place.started}")}
    with process(["workers", "health"], place.folder / "health.log", **environment) as check:
        return check.wait(timeout=30)


def test_two_workers_by_one_command_join_are_kept_running_and_leave_in_good_order(place, api):
    with place.command("--workers", "2") as (parent, words):
        first = eventually(lambda: len(found := place.up(api)) == 2 and found, 60)
        eventually(lambda: well(place) == 0, 10)

        victim, other = children(parent.pid, "-m", "workers")
        victim.kill()
        second = eventually(lambda: len(found := place.up(api)) == 2 and found != first and found, 60)
        assert len(set(first) & set(second)) == 1
        assert "ended with code -9" in words.read_text()
        assert other in children(parent.pid, "-m", "workers")

        # What leaves in good order gives its job back, and that costs no attempt.
        job_id, _ = submit_long(place.house, max_attempts=1, execution={"backend": "cpu"})
        eventually(lambda: computing(api, job_id), 30)
        family = below(parent.pid)
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(timeout=30) == 0
        assert all_gone(family)
        eventually(lambda: not place.up(api), 5)
        assert api.until(job_id, "queued")["phase"] == "waiting_for_worker"
        assert api.post(f"/jobs/{job_id}/cancel").status_code in (200, 202)
        assert well(place) == 1


def test_of_a_parent_that_is_killed_nobody_is_left(place, api):
    with place.command("--workers", "2") as (parent, _):
        eventually(lambda: len(place.up(api)) == 2, 60)
        family = below(parent.pid)
        assert len(family) >= 4  # two workers, and their nurseries
        parent.kill()
        eventually(lambda: all_gone(family), 15)
        # They were told to, rather than killed.
        eventually(lambda: not place.up(api), 5)


def test_workers_that_are_refused_are_not_started_again(place, api, tmp_path):
    token = tmp_path / "token"
    token.write_text("wrong")
    with place.command("--workers", "2", TIDEMILL_JOIN_TOKEN="", TIDEMILL_JOIN_TOKEN_FILE=str(token)) as (
        parent,
        words,
    ):
        assert parent.wait(timeout=90) == 2
    assert f"The server at {place.house.url} refused this worker" in words.read_text()
    assert "starting it again" not in words.read_text()


def test_a_worker_of_another_version_is_refused_with_both_versions(place, api):
    arguments = ["dask", "--scheduler", place.address, "--server", place.house.url, "--threads", "1", "--token", TOKEN]
    done = subprocess.run(
        [sys.executable, "-c", LATER, *arguments], capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 2
    assert f"The server at {place.house.url} refused this worker" in done.stderr
    assert "version 999" in done.stderr
    assert f"version {VERSION}" in done.stderr
    assert "Install the same Tidemill on both" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_waits_for_its_scheduler_and_does_the_lost_job_again(place, api):
    with place.command(TIDEMILL_JOIN_TOKEN="", TIDEMILL_JOIN_TOKEN_FILE=str(token_file(place))) as (worker, words):
        before = eventually(lambda: place.up(api), 60)
        job_id, dataset = submit_long(place.house, n=30_000, execution={"backend": "cpu"})
        eventually(lambda: computing(api, job_id), 30)
        place.unschedule()
        eventually(lambda: "starting again, and waiting for it" in words.read_text(), 20)
        eventually(lambda: "waiting for the Dask scheduler at" in words.read_text().partition("starting again")[2], 20)
        assert worker.poll() is None
        place.schedule()
        after = eventually(lambda: (found := place.up(api)) and found.keys() != before.keys() and found, 120)
        assert len(after) == 1
        job = api.until(job_id, "succeeded", seconds=90)
        assert job["attempt"] == 2
        assert ends(api, job_id) == ["succeeded"]
        undisturbed = api.submit(
            {
                "kind": "matrix_profile",
                "params": {"series": {"dataset": dataset}, "window": 100},
                "execution": {"implementation": "stumpy", "backend": "cpu"},
            },
            Prefer="wait=60",
        )
        assert undisturbed["state"] == "succeeded"
        assert (undisturbed["id"], undisturbed["attempt"]) != (job_id, 2)
        assert (
            api.get(job["links"]["result"]).json()["distances"]
            == (api.get(undisturbed["links"]["result"]).json()["distances"])
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=30) == 0


def token_file(place: Place) -> Path:
    file = place.folder / "token"
    file.write_text(TOKEN + "\n")
    return file


def test_a_worker_that_waits_for_a_scheduler_can_be_stopped(place, api):
    nobody = f"tcp://127.0.0.1:{free_port()}"
    for address in (nobody, "tcp://nobody.invalid:8786"):
        with place.command("--scheduler", address) as (worker, words):
            eventually(lambda: f"waiting for the Dask scheduler at {address}" in words.read_text(), 30)  # noqa: B023
            assert well(place) == 1
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=10) == 0
        assert "Traceback" not in words.read_text()


def test_a_worker_that_dask_retires_leaves_for_good(place, api):
    from distributed import Client

    with place.command("--workers", "2") as (parent, words):
        eventually(lambda: len(place.up(api)) == 2, 60)
        with Client(place.address, set_as_default=False) as client:
            client.retire_workers(list(place.up(api).values()), close_workers=True)
        assert parent.wait(timeout=30) == 0
    assert words.read_text().count("has left: it was told to") == 2
    assert "starting it again" not in words.read_text()


@pytest.mark.parametrize("where", ["TIDEMILL_CACHE_DIR", "its own prefix"])
def test_a_worker_that_may_not_keep_what_it_compiles_says_so(where, monkeypatch):
    code = "import sys; sys.prefix = '/proc/none'; from workers.__main__ import main; raise SystemExit(main())"
    if where == "TIDEMILL_CACHE_DIR":
        code = code.replace("sys.prefix = '/proc/none'; ", "")
        monkeypatch.setenv("TIDEMILL_CACHE_DIR", "/proc/none/var/cache/tidemill")
    else:
        monkeypatch.delenv("TIDEMILL_CACHE_DIR", raising=False)
    arguments = ["dask", "--scheduler", "tcp://127.0.0.1:9", "--server", "http://127.0.0.1:9"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Compiled kernels cannot be kept in /proc/none/var/cache/tidemill/numba: No such file or directory. "
        "Name a folder that this user may write in TIDEMILL_CACHE_DIR.\n"
    )
