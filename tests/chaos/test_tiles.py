"""One profile in tiles on two workers of a real cluster: right, stoppable, and going on where a killed attempt was. On Dask and on Ray."""

import contextlib
import io
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from tests.chaos.acts import SMALL, ends
from tests.chaos.spreading import children_of, engine_of, facts, home_and_other, newcomer
from tests.house import House, eventually, long_series
from tests.processes import at_work

N, M = 200_000, 100
"""Twenty thousand million pairs of windows: some seconds on two threads."""
CHECKED = list(range(0, N - M, 16_661))


on_dask = pytest.mark.parametrize("hurt", ["dask"], indirect=True)
"""What no engine does differently."""


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """Some rows of the profile of `long_series`, straight from the definition."""
    walk = np.random.default_rng(0).standard_normal(N).cumsum()
    shapes = np.lib.stride_tricks.sliding_window_view(walk, M).copy()
    shapes -= shapes.mean(axis=1, keepdims=True)
    shapes /= np.sqrt((shapes**2).sum(axis=1, keepdims=True))
    rows = []
    for i in CHECKED:
        near = shapes @ shapes[i]
        near[max(0, i - M // 4) : i + M // 4 + 1] = -np.inf
        rows.append(np.sqrt(M) * np.linalg.norm(shapes[near.argmax()] - shapes[i]))
    return np.array(rows)


@contextlib.contextmanager
def tiled_job(two: House, share: float, n: int = N) -> Iterator[tuple]:
    """A job of which so much is done."""
    with two.api() as api:
        dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(n))}).json()["id"]
        job_id = api.submit(
            {
                "kind": "matrix_profile",
                "params": {"series": {"dataset": dataset}, "window": M},
                "execution": {"backend": engine_of(two), "implementation": "tiles", "fallback": "forbid"},
            }
        )["id"]
        eventually(lambda: api.job(job_id)["progress"]["fraction"] >= share, 60, pause=0.05)
        yield api, job_id
        if api.job(job_id)["state"] == "running":
            api.post(f"/jobs/{job_id}/cancel")
            api.until(job_id, "cancelled")


def result_of(api, job_id: str) -> tuple[dict, np.ndarray]:
    job = api.until(job_id, "succeeded", "failed", seconds=120)
    assert job["state"] == "succeeded", job["error"]
    result = api.get(f"/jobs/{job_id}/result").json()
    return {**result, "job": job}, np.array(result["distances"])[CHECKED]


def test_both_workers_compute_tiles_in_their_own_threads_and_the_profile_is_right(two, truth):
    with tiled_job(two, 0.2) as (api, job_id):
        _, other = home_and_other(two, api, job_id)
        assert not children_of(other)  # a tile needs no process of its own
        result, rows = result_of(api, job_id)
    np.testing.assert_allclose(rows, truth, rtol=0, atol=1e-9)
    plan, provenance = result["job"]["plan"], result["provenance"]
    assert (plan["implementation"], plan["function"], plan["workers"]) == ("tiles", "tiles.self_join", 2)
    assert (provenance["implementation"], provenance["function"]) == ("tiles", "tiles.self_join")
    assert provenance["tiles_resumed"] == 0
    assert len(provenance["pieces_by_worker"]) == 2
    assert sum(provenance["pieces_by_worker"].values()) == provenance["tiles"]
    assert result["job"]["progress"]["unit"] == "tiles"
    assert result["summary"]["verification"]["max_abs_difference"] < 1e-9


def test_a_cancel_holds_within_two_seconds_on_every_worker(two):
    with tiled_job(two, 0.1) as (api, job_id):
        workers = home_and_other(two, api, job_id)
        started = time.monotonic()
        assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
        api.until(job_id, "cancelled", seconds=10)
        eventually(lambda: not any(computes(worker) for worker in workers), 10, pause=0.01)
        assert time.monotonic() - started < 2 + LOOK_SECONDS
        assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"


LOOK_SECONDS = 0.3


def computes(worker: psutil.Process) -> bool:
    """A thread of a worker's, or a child that it forked."""
    return at_work(lambda: [worker, *children_of(worker)], LOOK_SECONDS)


@on_dask
def test_a_worker_killed_under_its_tiles_costs_those_tiles_only(two, truth):
    with tiled_job(two, 0.2) as (api, job_id):
        _, other = home_and_other(two, api, job_id)
        other.kill()
        result, rows = result_of(api, job_id)
    np.testing.assert_allclose(rows, truth, rtol=0, atol=1e-9)
    assert (result["job"]["attempt"], result["provenance"]["tiles_resumed"]) == (1, 0)


def test_after_the_drivers_worker_is_killed_the_job_goes_on_where_it_was(two, truth):
    with tiled_job(two, 0.3) as (api, job_id):
        home, _ = home_and_other(two, api, job_id)
        done = api.job(job_id)["progress"]
        home.kill()
        result, rows = result_of(api, job_id)
        assert ends(api, job_id) == ["succeeded"]
    np.testing.assert_allclose(rows, truth, rtol=0, atol=1e-9)
    assert result["job"]["attempt"] == 2
    lost = done["done"] - result["provenance"]["tiles_resumed"]
    assert lost <= 0.05 * done["total"]


@on_dask
def test_a_retry_goes_on_where_the_cancelled_job_was(two, truth):
    with tiled_job(two, 0.3) as (api, job_id):
        done = api.job(job_id)["progress"]
        api.post(f"/jobs/{job_id}/cancel")
        api.until(job_id, "cancelled")
        again = api.post(f"/jobs/{job_id}/retry").json()["id"]
        needed = api.delete(f"/jobs/{job_id}")
        assert (needed.status_code, again in needed.json()["detail"]) == (409, True)
        result, rows = result_of(api, again)
    np.testing.assert_allclose(rows, truth, rtol=0, atol=1e-9)
    assert done["done"] - result["provenance"]["tiles_resumed"] <= 0.05 * done["total"]


@on_dask
def test_a_worker_that_joins_in_the_middle_gets_tiles(two, tmp_path):
    before = set(facts(two))
    with tiled_job(two, 0.01, n=5 * N) as (api, job_id), newcomer(two, api, job_id, tmp_path):
        eventually(lambda: set(facts(two)) - before, 120)
        (new,) = set(facts(two)) - before
        worker = psutil.Process(facts(two)[new]["pid"])
        eventually(lambda: computes(worker), 30)
        assert api.job(job_id)["attempt"] == 1


# ---- the profile so far ----------------------------------------------------------------------------------------------


@on_dask
def test_the_profile_so_far_is_told_with_its_coverage(two):
    with tiled_job(two, 0.3, n=2 * N) as (api, job_id):
        link = f"/jobs/{job_id}/result"
        assert api.get(link).status_code == 409
        answer = api.get(link, params={"partial": "true"})
        assert answer.status_code == 200, answer.text
        so_far = answer.json()
        columns = api.get(link, params={"partial": "true"}, headers={"Accept": "application/x-npz"})
        result, _ = result_of(api, job_id)
        whole = api.get(link, params={"partial": "true"}).json()
    assert so_far["partial"] is True
    assert 0.2 < so_far["coverage"] < 1
    assert float(answer.headers["tidemill-coverage"]) == pytest.approx(so_far["coverage"], abs=1e-6)
    distances = np.array(so_far["distances"], dtype=np.float64)
    final = np.array(result["distances"])
    assert len(distances) == len(so_far["indices"]) == len(final)
    assert np.isfinite(distances).all()  # early on, every window has been compared with some others
    assert np.all(distances >= final - 1e-9)
    assert 0 < np.mean(distances <= final + 1e-9) < 1  # and some have found their nearest already
    stored = np.load(io.BytesIO(columns.content))
    assert stored["coverage"] >= so_far["coverage"]
    assert np.all(stored["distances"] <= distances + 1e-9)  # and it only gets better
    assert "partial" not in whole
    assert whole["distances"] == result["distances"]


@on_dask
def test_a_kind_that_keeps_no_profile_so_far_says_so(two):
    with two.api() as api:
        dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(60_000))}).json()["id"]
        body = {"kind": "matrix_profile", "params": {"series": {"dataset": dataset}, "window": M, "k": 3}}
        job_id = api.submit(body)["id"]
        api.until(job_id, "running")
        answer = api.get(f"/jobs/{job_id}/result", params={"partial": "true"})
        api.post(f"/jobs/{job_id}/cancel")
    assert answer.status_code == 409
    assert answer.json()["type"] == "/problems/not-ready"
    assert "stumpy" in answer.json()["detail"]
