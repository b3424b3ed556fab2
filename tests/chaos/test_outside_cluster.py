"""A Dask cluster that is not the server's: it outlives the server, and so do the jobs on it."""

import contextlib
import signal
import subprocess
from pathlib import Path

import pytest

from tests.chaos.acts import SMALL, computing, ends, free_port, process, submit_long
from tests.house import House, eventually, running

TOKEN = "a-secret-for-joining"


@pytest.fixture
def outside(home: Path, scheduler: str) -> House:
    """A server on a fixed port, which workers find again after its restart."""
    environment = {"TIDEMILL_DASK_SCHEDULER": scheduler, "TIDEMILL_JOIN_TOKEN": TOKEN}
    house = House(home, environment, port=free_port())
    house.url = f"http://127.0.0.1:{house.port}"
    return house


def worker(
    house: House, scheduler: str, port: int = 0, **environment: str
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    arguments = [
        "workers",
        "dask",
        "--scheduler",
        scheduler,
        "--server",
        house.url,
        "--threads",
        "1",
        "--port",
        str(port),
    ]
    return process(arguments, house.home.parent / "worker.log", **environment)


@pytest.mark.parametrize("backend", ["cpu", "dask"])
def test_a_running_job_does_not_notice_that_the_server_was_killed(outside, scheduler, backend):
    with worker(outside, scheduler, TIDEMILL_JOIN_TOKEN=TOKEN), running(outside) as house:
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


def test_a_worker_without_the_token_is_refused_and_says_so(outside, scheduler):
    with worker(outside, scheduler, TIDEMILL_JOIN_TOKEN=TOKEN) as good, running(outside) as house:
        with worker(house, scheduler, TIDEMILL_JOIN_TOKEN="wrong") as bad:
            assert bad.wait(timeout=60) == 2
        assert "refused this worker" in (house.home.parent / "worker.log").read_text()
        with house.api() as api:
            assert len(api.get("/capabilities").json()["engines"][0]["workers"]) == 1
            # One that leaves in good order gives its job back, and that costs no attempt.
            job_id, _ = submit_long(house, max_attempts=1)
            eventually(lambda: computing(api, job_id))
            good.send_signal(signal.SIGTERM)
            assert good.wait(timeout=30) == 0
            assert api.until(job_id, "queued")["phase"] == "waiting_for_worker"
            assert "no worker is there" in api.get(f"/jobs/{job_id}/explain").json()["summary"]
            assert api.get("/health/ready").status_code == 503
            with worker(house, scheduler, TIDEMILL_JOIN_TOKEN=TOKEN):
                assert api.until(job_id, "running", seconds=60)["attempt"] == 2
                assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
                api.until(job_id, "cancelled")
                assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"


def test_the_engines_own_second_run_is_refused_its_claim(outside, scheduler):
    """Dask runs a task again when its worker dies. With the server away, nobody tells it not to."""
    outside.environment["TIDEMILL_WORKER_SILENCE_SECONDS"] = "3"
    port, words = free_port(), outside.home.parent / "worker.log"
    with worker(outside, scheduler, port, TIDEMILL_JOIN_TOKEN=TOKEN) as first, running(outside) as house:
        job_id, _ = submit_long(house)
        with house.api() as api:
            eventually(lambda: computing(api, job_id))
        house.kill()
        first.kill()
        # The task was meant for one address, so Dask waits for a worker there.
        with worker(outside, scheduler, port, TIDEMILL_JOIN_TOKEN=TOKEN):
            house.start()
            eventually(lambda: "is not ours to run" in words.read_text(), 30)
            with house.api() as api:
                # The first execution is lost, by its silence; the second attempt is another claim.
                job = eventually(
                    lambda: (job := api.job(job_id)) and job["attempt"] == 2 and job["phase"] == "computing" and job, 40
                )
                assert job["state"] == "running"
                api.post(f"/jobs/{job_id}/cancel")
                api.until(job_id, "cancelled")
                assert ends(api, job_id) == ["cancelled"]
