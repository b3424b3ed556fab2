"""Workers that are killed, frozen or told to run a thing twice; and kernels that are stopped in mid-air."""

import contextlib
import signal
import sqlite3
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.chaos.acts import SMALL, computing, ends, submit_long
from tests.chaos.spreading import facts
from tests.house import House, eventually, listening, running
from tests.processes import all_gone, below, children, lives, says

ON_ONE = {"backend": "cpu"}
"""`auto` would spread it, once a second worker has joined."""


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with two workers, whose tests hurt them and wait until they are back."""
    environment = {"TIDEMILL_WORKERS": "2", "TIDEMILL_WORKER_THREADS": "1", "TIDEMILL_WORKER_SILENCE_SECONDS": "4"}
    with running(House(tmp_path_factory.mktemp("hurt") / "home", environment)) as house:
        yield house


@pytest.fixture
def two(hurt: House) -> House:
    """The house with both workers up and free."""
    with hurt.api() as api:
        eventually(lambda: len(api.get("/capabilities").json()["engines"][0]["workers"]) == 2, 40)
    return hurt


def worker_of(house: House, job_id: str) -> psutil.Process:
    """The process of the worker that runs a job."""
    with house.api() as api:
        (worker_id,) = [e["data"]["worker"] for e in api.events(job_id) if e["data"].get("worker")][-1:]
        workers = api.get("/capabilities").json()["engines"][0]["workers"]
        address = next(w["address"] for w in workers if w["id"] == worker_id)
    port = int(address.rpartition(":")[2])
    return next(
        p for p in house.workers() if any(c.laddr.port == port for c in p.net_connections() if c.status == "LISTEN")
    )


def test_nothing_of_an_embedded_cluster_can_be_reached_from_outside(two):
    """Whoever reaches a Dask scheduler or worker can run code there."""
    addresses = listening(two.family())
    assert len(addresses) >= 4
    assert set(addresses) == {"127.0.0.1"}


def test_a_cancel_stops_a_kernel_within_two_seconds_and_the_worker_lives(two):
    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker = worker_of(two, job_id)
        (nursery,) = children(worker)
        (child,) = children(nursery)
        started = time.monotonic()
        assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
        api.until(job_id, "cancelled")
        assert time.monotonic() - started < 2
        assert not lives(child)
        assert lives(worker)
        assert lives(nursery)
        assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"


def test_a_worker_killed_under_a_job_costs_one_attempt_and_the_job_goes_on(two):
    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker = worker_of(two, job_id)
        family = below(worker)
        worker.kill()
        job = eventually(
            lambda: (job := api.job(job_id)) and job["attempt"] == 2 and job["phase"] == "computing" and job, 20
        )
        assert job["state"] == "running"
        eventually(lambda: all_gone(family), 5)
        assert any("left the cluster" in str(e["data"]) for e in api.events(job_id))
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")
        assert ends(api, job_id) == ["cancelled"]


def test_with_its_attempts_used_up_the_job_fails_as_worker_lost(two):
    job_id, _ = submit_long(two, execution=ON_ONE, max_attempts=1)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker_of(two, job_id).kill()
        job = api.until(job_id, "failed")
        assert job["error"]["type"] == "/problems/worker-lost"
        assert api.get(job["error"]["type"]).status_code == 200


def test_a_killed_child_fails_its_job_and_not_its_worker(two):
    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker = worker_of(two, job_id)
        children(children(worker)[0])[0].kill()
        assert api.until(job_id, "failed")["error"]["type"] == "/problems/out-of-memory"
        assert lives(worker)


def test_a_killed_nursery_costs_one_attempt_and_is_started_again(two):
    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker = worker_of(two, job_id)
        children(worker)[0].kill()
        eventually(lambda: (job := api.job(job_id)) and job["attempt"] == 2 and job["phase"] == "computing", 30)
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")
        assert lives(worker)
        assert [api.submit(SMALL, Prefer="wait=60")["state"] for _ in range(3)] == ["succeeded"] * 3


def test_what_a_frozen_worker_says_later_is_not_taken(two):
    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        worker = worker_of(two, job_id)
        [known] = [name for name, about in facts(two).items() if about["pid"] == worker.pid]
        child = children(children(worker)[0])[0]
        worker.send_signal(signal.SIGSTOP)
        try:
            job = eventually(lambda: (job := api.job(job_id)) and job["attempt"] == 2 and job, 20)
            assert job["state"] == "running"
        finally:
            worker.send_signal(signal.SIGCONT)
        # Its claim is void: it is told to stop, and its child ends, while the new attempt goes on.
        eventually(lambda: not lives(child), 10)
        eventually(lambda: known in facts(two), 10)  # it has joined again
        assert api.job(job_id)["state"] == "running"
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")
        assert ends(api, job_id) == ["cancelled"]


def test_a_second_run_by_the_engine_is_refused_its_claim(two):
    """The engine runs the very same task once more, on the other worker, while the first run computes."""
    from distributed import Client

    from workers.contract import call_by_name

    job_id, _ = submit_long(two, execution=ON_ONE)
    with two.api() as api:
        eventually(lambda: computing(api, job_id))
        address = api.get("/capabilities").json()["engines"][0]["address"]
        attempt = attempt_of(two, job_id)
        with Client(address, set_as_default=False) as client:
            again = client.submit(call_by_name, "workers.attempt:execute", attempt, key=f"{attempt}-again", pure=False)
            assert again.result(timeout=20) == "refused"
        job = api.job(job_id)
        assert (job["state"], job["attempt"], job["phase"]) == ("running", 1, "computing")
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")


def attempt_of(house: House, job_id: str) -> str:
    """The id of a job's newest attempt, which only the database tells."""
    with contextlib.closing(sqlite3.connect(f"file:{house.home / 'tidemill.db'}?mode=ro", uri=True)) as db:
        return str(db.execute("SELECT id FROM attempt WHERE job_id = ? ORDER BY number DESC", (job_id,)).fetchone()[0])


def test_a_scheduler_that_dies_is_started_again_with_its_workers(two):
    scheduler = next(each for each in two.family() if says(each, "scheduler"))
    with two.api() as api:
        scheduler.kill()
        eventually(lambda: api.get("/health/ready").status_code == 503, 10)
        eventually(lambda: api.get("/health/ready").status_code == 200, 40)
        assert api.submit(SMALL, Prefer="wait=60")["state"] == "succeeded"
