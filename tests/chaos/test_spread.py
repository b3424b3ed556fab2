"""One job spread over two workers of a real cluster, and what it costs when a worker is killed, frozen, or joins: on Dask and on Ray."""

import contextlib
import signal
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from tests.chaos.acts import SMALL, ends
from tests.chaos.spreading import children_of, engine_of, facts, home_and_other, newcomer
from tests.house import House, eventually, long_series
from tests.processes import all_gone, below, lives

LONG = 40_000
"""Samples whose profile takes about four seconds of one thread."""


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
    assert lives(home)
    assert lives(other)
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
    family = below(home)
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
    with spread_job(two, 6 * LONG) as (house, api, job_id), newcomer(house, api, job_id, tmp_path):
        eventually(lambda: set(facts(house)) - before, 120)
        (new,) = set(facts(house)) - before
        worker = psutil.Process(facts(house)[new]["pid"])
        eventually(lambda: children_of(worker), 20, pause=0.005)
        assert api.job(job_id)["attempt"] == 1
