"""Jobs on workers that do not have the server's storage: what they read is fetched, what they leave is put back."""

import hashlib
import signal
from pathlib import Path
from typing import Any

import numpy as np

from tests import oracle
from tests.chaos.acts import computing
from tests.house import Api, eventually, long_series
from tests.processes import all_gone
from tests.storage.conftest import Far, workers_of


def walk(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).cumsum()


def upload(api: Api, values: np.ndarray, name: str = "walk.csv") -> str:
    text = "value\n" + "\n".join(map(repr, values.tolist()))
    return str(api.post("/datasets", files={"file": (name, text)}).json()["id"])


def logs(api: Api, job_id: str) -> str:
    return " ".join(e["data"].get("message", "") for e in api.events(job_id) if e["type"] == "log")


def fractions(api: Api, job_id: str) -> list[float]:
    """How much was done, whenever the job said so."""
    told = [e["data"] for e in api.events(job_id) if e["type"] == "progress"]
    return [data["fraction"] for data in told if data.get("fraction")]


def profile(dataset: str, backend: str = "cpu", **more: Any) -> dict[str, Any]:
    params = {"series": {"dataset": dataset}, "window": 50, **more}
    return {"kind": "matrix_profile", "params": params, "execution": {"backend": backend, "fallback": "forbid"}}


def attempt_folder(far: Far, job_id: str, number: int = 1) -> Path:
    return far.house.home / "jobs" / job_id / str(number)


def test_capabilities_say_how_each_worker_gets_its_files(far: Far) -> None:
    with far.house.api() as api:
        assert [worker["storage"] for worker in workers_of(api)] == ["http", "http"]


def test_a_profile_comes_back_and_its_dataset_is_fetched_once(far: Far) -> None:
    values = walk(700, 1)
    with far.house.api() as api:
        dataset, other = upload(api, values), upload(api, walk(500, 2), "other.csv")
        told = []
        for backend in ("cpu", "cpu", "dask"):
            job = api.submit(profile(dataset, backend, against={"dataset": other}), Prefer="wait=60")
            assert job["state"] == "succeeded", job
            told.append(logs(api, job["id"]))
            result = api.get(job["links"]["result"]).json()
            truth = oracle.matrix_profile(values, 50, against=walk(500, 2))
            np.testing.assert_allclose(result["distances"], truth.distances[:, 0], atol=1e-9)
        assert "over HTTP: 2, of" in told[0]
        assert "2 of them known from before" in told[1]
        assert "2 of them known from before" in told[2]
        for each in api.get(f"/jobs/{job['id']}/artifacts").json()["items"]:
            content = api.get(each["link"]).content
            assert (len(content), hashlib.sha256(content).hexdigest()) == (each["bytes"], each["sha256"])
        assert "distances" in api.get(job["links"]["result"]).json()
        assert (attempt_folder(far, job["id"]) / "outcome.json").is_file()


def test_nothing_is_left_on_the_worker_but_the_cache(far: Far) -> None:
    with far.house.api() as api:
        job = api.submit(profile(upload(api, walk(400, 3))), Prefer="wait=60")
        assert job["state"] == "succeeded", job
    eventually(lambda: not list(far.cache.glob(f"spool/*/*{job['id']}*")), 5)
    eventually(lambda: not [each for each in far.cache.glob("spool/*/*") if each.is_dir()], 5)


def test_a_log_and_the_profile_so_far_can_be_read_meanwhile_and_a_cancel_keeps_the_checkpoint(far: Far) -> None:
    with far.house.api() as api:
        dataset = str(api.post("/datasets", files={"file": ("walk.npy", long_series(200_000))}).json()["id"])
        body = {**profile(dataset, "dask", window=100)}
        job_id = str(api.submit(body)["id"])
        eventually(lambda: computing(api, job_id), 60)
        eventually(lambda: api.get(f"/jobs/{job_id}/result", params={"partial": True}).status_code == 200, 60, 0.3)
        # The log is there while the job runs.
        eventually(lambda: api.get(f"/jobs/{job_id}/logs").text, 10)
        done = api.job(job_id)["progress"]["fraction"]
        assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
        api.until(job_id, "cancelled", seconds=10)
        assert (attempt_folder(far, job_id) / "tiles.checkpoint").is_file()
        again = str(api.post(f"/jobs/{job_id}/retry").json()["id"])
        assert eventually(lambda: fractions(api, again), 60)[0] > 0.5 * done
        api.post(f"/jobs/{again}/cancel")
        api.until(again, "cancelled", seconds=10)


def test_a_killed_worker_loses_no_more_than_what_was_not_put_back_yet(far: Far) -> None:
    with far.house.api() as api:
        dataset = str(api.post("/datasets", files={"file": ("walk.npy", long_series(120_000))}).json()["id"])
        job_id = str(api.submit(profile(dataset, "cpu", window=100))["id"])
        eventually(lambda: (attempt_folder(far, job_id) / "tiles.checkpoint").is_file(), 60)
        eventually(lambda: api.job(job_id)["progress"]["fraction"] > 0.2, 60)
        owner = far.owner_of(job_id)
        before = api.job(job_id)["progress"]["fraction"]
        owner.kill()
        owner.wait()
        eventually(lambda: api.job(job_id)["attempt"] == 2, 30)
        job = api.job(job_id, wait=60)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        second = [e for e in api.events(job_id) if e["type"] == "state" and e["data"]["to"] == "running"][-1]["seq"]
        told = [e["data"] for e in api.events(job_id) if e["type"] == "progress" and e["seq"] > second]
        assert next(data["fraction"] for data in told if data.get("fraction")) > 0.3 * before


def test_the_server_away_at_the_end_of_a_job_gets_its_files_when_it_is_back(far: Far) -> None:
    with far.house.api() as api:
        dataset = str(api.post("/datasets", files={"file": ("walk.npy", long_series(60_000))}).json()["id"])
        job_id = str(api.submit(profile(dataset, "cpu", window=100))["id"])
        eventually(lambda: computing(api, job_id), 60)
    far.house.kill()
    eventually(lambda: "the server is away" in far.words(), 30)
    far.house.start()
    with far.house.api() as api:
        job = api.job(job_id, wait=60)
        assert (job["state"], job["attempt"]) == ("succeeded", 1)
        assert len(api.get(job["links"]["result"]).json()["distances"]) == 60_000 - 99


def test_a_worker_that_leaves_hands_over_what_it_had(far: Far) -> None:
    with far.house.api() as api:
        dataset = str(api.post("/datasets", files={"file": ("walk.npy", long_series(120_000))}).json()["id"])
        job_id = str(api.submit(profile(dataset, "cpu", window=100, k=1), Prefer="wait=0")["id"])
        eventually(lambda: api.job(job_id)["progress"].get("fraction", 0) > 0.2, 60)
        owner = far.owner_of(job_id)
        owner.send_signal(signal.SIGTERM)
        eventually(lambda: all_gone([owner]), 20)
        assert (attempt_folder(far, job_id) / "tiles.checkpoint").is_file()
        job = api.job(job_id, wait=60)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
