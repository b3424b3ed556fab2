"""Ends in good order: of a server with work in hand, of a server that is not up yet, of workers that nobody waits for; and a full queue."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.chaos.acts import SMALL, computing, ends, free_port, process, submit_long
from tests.house import House, eventually, running


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with one worker, minutes to drain, and a short queue. Starting it takes long, so three tests have it one after the other."""
    environment = {
        "TIDEMILL_WORKERS": "1",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_DRAIN_SECONDS": "600",
        "TIDEMILL_WORKER_SILENCE_SECONDS": "2",
        "TIDEMILL_MAX_QUEUE": "2",
    }
    with running(House(tmp_path_factory.mktemp("patient") / "home", environment)) as house:
        yield house


@pytest.fixture
def draining(patient: House) -> House:
    """The server, up."""
    assert patient.process is not None
    if patient.process.poll() is not None:
        patient.start()
    return patient


def test_more_jobs_than_the_queue_takes_are_refused_whole(draining):
    with draining.api() as api:
        before = api.get("/jobs").json()["items"]
        refused = api.post("/jobs/batch", json={"jobs": [SMALL] * 3})
        assert refused.status_code == 429
        assert refused.json()["type"] == "/problems/queue-full"
        assert int(refused.headers["Retry-After"]) > 0
        assert api.get("/jobs").json()["items"] == before
        taken = api.post("/jobs/batch", json={"jobs": [SMALL] * 2})
        assert taken.status_code == 202
        for job in taken.json()["jobs"]:
            assert api.job(job["id"], wait=30)["state"] == "succeeded"


def test_a_server_that_drains_lets_its_jobs_finish_and_hears_them_out(draining):
    """Longer than a silence counts as death: workers go on reporting while the server drains."""
    house = draining
    job_id, _ = submit_long(house, n=40_000, max_attempts=1)
    with house.api() as api:
        eventually(lambda: computing(api, job_id))
    assert house.end() == 0
    house.start()
    with house.api() as api:
        job = api.job(job_id)
        assert (job["state"], job["attempt"]) == ("succeeded", 1)
        assert ends(api, job_id) == ["succeeded"]
        phases = [event["data"]["phase"] for event in api.events(job_id) if event["type"] == "phase"]
        assert phases == ["loading", "computing", "verifying", "saving"]


def test_a_second_signal_ends_the_draining(draining):
    house, said_before = draining, len(draining.words())
    job_id, _ = submit_long(house)
    with house.api() as api:
        eventually(lambda: computing(api, job_id))
        assert house.process is not None
        house.process.send_signal(signal.SIGTERM)
        eventually(lambda: api.get("/health/ready").status_code == 503)
    assert house.end() == 0
    assert "run again after the next start" in house.words()[said_before:]


@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.8, 1.0, 1.2, 2.0])
def test_a_server_stopped_while_it_starts_has_ended_in_good_order(home, seconds):
    server = subprocess.Popen([sys.executable, "-m", "app", "--port", "0", "--home", str(home)])
    time.sleep(seconds)
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=20) == 0


def test_a_worker_that_finds_nobody_can_be_stopped(tmp_path):
    arguments = ["workers", "dask", "--scheduler", f"tcp://127.0.0.1:{free_port()}", "--server", "http://127.0.0.1:9"]
    with process(arguments, tmp_path / "worker.log") as worker:
        time.sleep(3)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=10) == 0


def test_a_worker_of_another_cluster_is_refused_and_says_why(house, scheduler, tmp_path):
    arguments = ["workers", "dask", "--scheduler", scheduler, "--server", house.url, "--threads", "1"]
    with process(arguments, tmp_path / "worker.log") as worker, contextlib.suppress(subprocess.TimeoutExpired):
        assert worker.wait(timeout=60) == 2
    assert "is not on the server's cluster" in (tmp_path / "worker.log").read_text()
