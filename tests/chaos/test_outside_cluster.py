"""A Dask cluster that is not the server's: it outlives the server, and so do the jobs on it.

All tests have one scheduler and one server, and take them up with a worker, whatever the test before did to either: starts take seconds.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.chaos.acts import SMALL, computing, ends, free_port, process, scheduler_at, submit_long
from tests.house import House, eventually, running

TOKEN = "a-secret-for-joining"


@dataclass
class Outside:
    """A scheduler, a server on a fixed port, which workers find again after its restart, and whichever worker came last."""

    scheduler: str
    scheduling: subprocess.Popen[bytes]
    """The scheduler's process."""
    house: House
    stack: contextlib.ExitStack
    words: Path
    """What all workers print."""
    port: int = field(default_factory=free_port)
    """Of the last worker."""
    worker: subprocess.Popen[bytes] | None = None

    def join(self, port: int | None = None) -> subprocess.Popen[bytes]:
        """One more worker with the right token, on a port of its own unless it is told which."""
        self.port = port or free_port()
        self.worker = self.stack.enter_context(self.joining(TOKEN, self.port))
        return self.worker

    @contextlib.contextmanager
    def without_scheduler(self) -> Iterator[None]:
        """The scheduler is killed, and comes back afterwards where it was."""
        self.scheduling.kill()
        self.scheduling.wait(timeout=10)
        yield
        port = int(self.scheduler.rpartition(":")[2])
        self.scheduling = self.stack.enter_context(scheduler_at(port, self.words.parent))

    def joining(self, token: str, port: int = 0) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        arguments = ["workers", "dask", "--scheduler", self.scheduler, "--server", self.house.url, "--threads", "1"]
        return process([*arguments, "--port", str(port)], self.words, TIDEMILL_JOIN_TOKEN=token)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    with contextlib.ExitStack() as stack:
        port = free_port()
        scheduler, scheduling = f"tcp://127.0.0.1:{port}", stack.enter_context(scheduler_at(port, folder))
        environment = {"TIDEMILL_DASK_SCHEDULER": scheduler, "TIDEMILL_JOIN_TOKEN": TOKEN}
        house = House(folder / "home", environment, port=free_port())
        house.url = f"http://127.0.0.1:{house.port}"
        outside = Outside(scheduler, scheduling, house, stack, folder / "worker.log")
        outside.join()
        stack.enter_context(running(house))
        yield outside


@pytest.fixture
def outside(made: Outside) -> Outside:
    """With its server and a worker up."""
    if made.worker is None or made.worker.poll() is not None:
        made.join()
    assert made.house.process is not None
    if made.house.process.poll() is not None:
        made.house.start()
    with made.house.api() as api:
        eventually(lambda: len(api.get("/capabilities").json()["engines"][0]["workers"]) == 1, 60)
    return made


@pytest.mark.parametrize("backend", ["cpu", "dask"])
def test_a_running_job_does_not_notice_that_the_server_was_killed(outside, backend):
    house = outside.house
    # It takes some seconds: long enough to lose the server in the middle of it, and short enough to wait for.
    job_id, _ = submit_long(house, n=40_000, execution={"backend": backend, "fallback": "forbid"})
    with house.api() as api:
        eventually(lambda: computing(api, job_id))
    house.kill()
    house.start()
    with house.api() as api:
        assert api.get("/capabilities").json()["engines"][0]["mode"] == "outside"
        job = api.job(job_id, wait=60)
        assert (job["state"], job["attempt"]) == ("succeeded", 1)
        assert ends(api, job_id) == ["succeeded"]
        seqs = [event["seq"] for event in api.events(job_id)]
        assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("backend", ["cpu", "dask"])
def test_a_scheduler_that_comes_back_is_found_again_and_what_it_lost_runs_once_more(outside, backend):
    """Lost are the pieces of a job that is spread; one that its worker computes alone may still end there."""
    house, worker = outside.house, outside.worker
    job_id, dataset = submit_long(house, n=40_000, execution={"backend": backend, "fallback": "forbid"})
    with house.api() as api:
        eventually(lambda: computing(api, job_id))
        with outside.without_scheduler():
            eventually(lambda: api.get("/capabilities").json()["engines"][0]["status"] == "down")
            assert "cluster is not up" in api.get("/health/ready").json()["detail"]
        # Nobody does anything: the worker starts itself again and waits for its scheduler, and the server finds both.
        job = eventually(lambda: (job := api.job(job_id)) and job["state"] == "succeeded" and job, 120)
        assert job["attempt"] in ((2,) if backend == "dask" else (1, 2))
        assert worker.poll() is None
        assert ends(api, job_id) == ["succeeded"]
        seqs = [event["seq"] for event in api.events(job_id)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert "Traceback" not in house.words()
        result = api.get(job["links"]["result"]).json()
        truth = api.run(series={"dataset": dataset}, window=100)
        assert result["indices"] == truth["indices"]
        assert result["distances"] == pytest.approx(truth["distances"], abs=1e-6)


def test_a_job_that_comes_while_the_scheduler_is_away_waits_for_it(outside):
    with outside.house.api() as api:
        with outside.without_scheduler():
            eventually(lambda: api.get("/capabilities").json()["engines"][0]["status"] == "down")
            job = api.submit({**SMALL, "max_attempts": 1})
            time.sleep(5)
            said = api.get(job["links"]["explain"]).json()
            assert (said["state"], said["never"]) == ("queued", None)
            assert "dask cluster cannot be reached now" in said["summary"]
        assert api.until(job["id"], "succeeded", "failed", seconds=90)["state"] == "succeeded"
        assert ends(api, job["id"]) == ["succeeded"]


def test_a_worker_without_the_token_is_refused_and_says_so(outside):
    with outside.joining("wrong") as bad:
        assert bad.wait(timeout=60) == 2
    assert "refused this worker" in outside.words.read_text()
    with outside.house.api() as api:
        assert len(api.get("/capabilities").json()["engines"][0]["workers"]) == 1
        # One that leaves in good order gives its job back, and that costs no attempt.
        job_id, _ = submit_long(outside.house, max_attempts=1)
        eventually(lambda: computing(api, job_id))
        good = outside.worker
        good.send_signal(signal.SIGTERM)
        assert good.wait(timeout=30) == 0
        assert api.until(job_id, "queued")["phase"] == "waiting_for_worker"
        assert "no worker is there" in api.get(f"/jobs/{job_id}/explain").json()["summary"]
        assert api.get("/health/ready").status_code == 503
        outside.join()
        assert api.until(job_id, "running", seconds=60)["attempt"] == 2
        assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
        api.until(job_id, "cancelled")
        assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"


def test_the_engines_own_second_run_is_refused_its_claim(outside):
    """Dask runs a task again when its worker dies. With the server away, nobody tells it not to.

    The last test of its cluster: the server soon takes silence for death afterwards.
    """
    house, first = outside.house, outside.worker
    job_id, _ = submit_long(house)
    with house.api() as api:
        eventually(lambda: computing(api, job_id))
    house.kill()
    first.kill()
    house.environment["TIDEMILL_WORKER_SILENCE_SECONDS"] = "3"
    said_before = outside.words.stat().st_size
    # The task was meant for one address, so Dask waits for a worker there.
    outside.join(outside.port)
    house.start()
    eventually(lambda: "is not ours to run" in outside.words.read_text()[said_before:], 30)
    with house.api() as api:
        # The first execution is lost, by its silence; the second attempt is another claim.
        job = eventually(
            lambda: (job := api.job(job_id)) and job["attempt"] == 2 and job["phase"] == "computing" and job, 40
        )
        assert job["state"] == "running"
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")
        assert ends(api, job_id) == ["cancelled"]
