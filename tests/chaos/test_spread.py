"""One job spread over two workers of a real cluster, and what it costs when a worker is killed, frozen, or joins: on Dask and on Ray."""

import contextlib
import json
import signal
import sqlite3
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from tests.chaos.acts import SMALL, all_gone, ends, process
from tests.house import House, eventually, long_series, running

LONG = 40_000
"""Samples whose profile takes about four seconds of one thread."""


@pytest.fixture(scope="module", params=["dask", "ray"])
def hurt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    environment = {
        "TIDEMILL_ENGINE": request.param,
        "TIDEMILL_WORKERS": "2",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_WORKER_SILENCE_SECONDS": "4",
    }
    with running(House(tmp_path_factory.mktemp("spread") / "home", environment)) as house:
        yield house


@pytest.fixture
def two(hurt: House) -> House:
    """The house with both workers up and free."""
    with hurt.api() as api:
        eventually(lambda: len(workers_up(api)) == 2, 60)
    return hurt


def workers_up(api) -> list[dict]:
    return api.get("/capabilities").json()["engines"][0]["workers"]


def engine_of(house: House) -> str:
    return house.environment["TIDEMILL_ENGINE"]


def facts(house: House) -> dict[str, dict]:
    """What each worker that is up said of itself when it joined."""
    with contextlib.closing(sqlite3.connect(f"file:{house.home / 'tidemill.db'}?mode=ro", uri=True)) as db:
        return {id: json.loads(told) for id, told in db.execute("SELECT id, facts FROM worker WHERE state = 'up'")}


def home_and_other(house: House, api, job_id: str) -> tuple[psutil.Process, psutil.Process]:
    """The process of the worker that drives the job, and that of the other one."""
    home = [e["data"]["worker"] for e in api.events(job_id) if e["data"].get("worker")][-1]
    told = facts(house)
    (other,) = set(told) - {home}
    return psutil.Process(told[home]["pid"]), psutil.Process(told[other]["pid"])


def children_of(worker: psutil.Process) -> list[psutil.Process]:
    """What its nursery has forked: the job's own child, and pieces."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            child
            for nursery in worker.children()
            if "workers.nursery" in nursery.cmdline()
            for child in nursery.children()
        ]
    return []


@contextlib.contextmanager
def spread_job(two: House, n: int) -> Iterator[tuple]:
    with two.api() as api:
        dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(n))}).json()["id"]
        body = {
            "kind": "matrix_profile",
            "params": {"series": {"dataset": dataset}, "window": 100},
            "execution": {"backend": engine_of(two), "implementation": "stumpy", "fallback": "forbid"},
        }
        job_id = api.submit(body)["id"]
        eventually(lambda: api.job(job_id)["progress"]["done"] >= 2, 40 if n == LONG else 60)
        yield two, api, job_id
        if api.job(job_id)["state"] == "running":
            api.post(f"/jobs/{job_id}/cancel")
            api.until(job_id, "cancelled")


@pytest.fixture
def job(two: House) -> Iterator[tuple]:
    """A spread job in the middle of its pieces."""
    with spread_job(two, LONG) as job:
        yield job


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """Some rows of the profile of `long_series`, straight from the definition."""
    walk = np.random.default_rng(0).standard_normal(LONG).cumsum()
    windows = np.lib.stride_tricks.sliding_window_view(walk, 100)
    shapes = windows - windows.mean(axis=1, keepdims=True)
    shapes /= np.sqrt((shapes**2).sum(axis=1, keepdims=True))
    rows = []
    for i in CHECKED:
        distances = np.sqrt(np.maximum(0, 2 * 100 * (1 - shapes @ shapes[i])))
        distances[max(0, i - 25) : i + 26] = np.inf
        rows.append(distances.min())
    return np.array(rows)


CHECKED = list(range(0, LONG - 99, 3331))


def result_of(api, job_id: str) -> tuple[dict, np.ndarray]:
    job = api.until(job_id, "succeeded", "failed", seconds=90)
    assert job["state"] == "succeeded", job["error"]
    result = api.get(f"/jobs/{job_id}/result").json()
    return {**result, "job": job}, np.array(result["distances"])[CHECKED]


def test_a_spread_job_runs_on_both_workers_and_is_right(job, truth):
    house, api, job_id = job
    result, rows = result_of(api, job_id)
    np.testing.assert_allclose(rows, truth, atol=1e-6)
    plan, provenance = result["job"]["plan"], result["provenance"]
    assert (plan["backend"], plan["function"], plan["workers"]) == (engine_of(house), "stumped", 2)
    assert provenance["function"] == "stumpy.stumped"
    assert len(provenance["pieces_by_worker"]) == 2
    assert sum(provenance["pieces_by_worker"].values()) == provenance["pieces"]
    assert result["job"]["attempt"] == 1


def test_a_cancel_ends_every_child_on_every_worker(job):
    house, api, job_id = job
    home, other = home_and_other(house, api, job_id)
    eventually(lambda: children_of(home) and children_of(other), 10, pause=0.005)
    started = time.monotonic()
    assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
    api.until(job_id, "cancelled", seconds=10)
    eventually(lambda: not children_of(home) and not children_of(other), 10)
    assert time.monotonic() - started < 10
    assert home.is_running()
    assert other.is_running()
    assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"


def test_after_a_cancel_the_next_spread_job_is_not_held_up(two):
    """What is left of the cancelled one (its client closes in the middle of things) is nobody else's to wait for."""
    for _ in range(3):
        with spread_job(two, LONG) as (_, api, job_id):
            api.post(f"/jobs/{job_id}/cancel")
            api.until(job_id, "cancelled")


def test_a_worker_killed_under_its_pieces_costs_those_pieces_only(job, truth):
    house, api, job_id = job
    _, other = home_and_other(house, api, job_id)
    other.kill()
    result, rows = result_of(api, job_id)
    np.testing.assert_allclose(rows, truth, atol=1e-6)
    assert result["job"]["attempt"] == 1


def test_a_worker_frozen_under_its_pieces_costs_those_pieces_only(job, truth):
    house, api, job_id = job
    _, other = home_and_other(house, api, job_id)
    other.send_signal(signal.SIGSTOP)
    try:
        result, rows = result_of(api, job_id)
    finally:
        other.send_signal(signal.SIGCONT)
    np.testing.assert_allclose(rows, truth, atol=1e-6)
    assert result["job"]["attempt"] == 1


def test_after_the_drivers_worker_is_killed_no_piece_goes_on_and_the_job_runs_again(job, truth):
    house, api, job_id = job
    home, other = home_and_other(house, api, job_id)
    family = home.children(recursive=True)
    eventually(lambda: children_of(other), 10, pause=0.005)
    pieces = children_of(other)
    home.kill()
    eventually(lambda: all_gone(family) and all_gone(pieces), 10)
    result, rows = result_of(api, job_id)
    np.testing.assert_allclose(rows, truth, atol=1e-6)
    assert result["job"]["attempt"] == 2
    assert ends(api, job_id) == ["succeeded"]


def test_a_worker_that_joins_in_the_middle_gets_pieces(two, tmp_path):
    before = set(facts(two))
    with spread_job(two, 10 * LONG) as (house, api, job_id), newcomer(house, api, job_id, tmp_path):
        eventually(lambda: set(facts(house)) - before, 120)
        (new,) = set(facts(house)) - before
        worker = psutil.Process(facts(house)[new]["pid"])
        eventually(lambda: children_of(worker), 20, pause=0.005)
        assert api.job(job_id)["attempt"] == 1


@contextlib.contextmanager
def newcomer(house: House, api, job_id: str, folder) -> Iterator[None]:
    """A third worker. An embedded Ray head has room for its own alone: there it is the one that replaces a killed one."""
    if engine_of(house) == "ray":
        home_and_other(house, api, job_id)[1].kill()
        yield
        return
    address = api.get("/capabilities").json()["engines"][0]["address"]
    arguments = ["workers", "dask", "--scheduler", address, "--server", house.url, "--threads", "1"]
    with process(arguments, folder / "worker.log"):
        yield
