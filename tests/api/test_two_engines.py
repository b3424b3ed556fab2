"""A server with a Dask cluster and a Ray cluster: each worker is asked through its own, and each job goes where its backend is."""

from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from tests.api.asking import profile
from tests.house import Api, BothEngines


@pytest.fixture(scope="module")
def two(both_engines: BothEngines) -> Iterator[Api]:
    with both_engines.whole() as api:
        yield api


def workers_of(api) -> dict[str, str]:
    """Worker → its engine."""
    engines = api.get("/capabilities").json()["engines"]
    return {worker["id"]: engine["name"] for engine in engines for worker in engine["workers"]}


def test_ready_means_that_each_engine_has_a_worker(both_engines):
    engines = both_engines.when_ready
    assert [(engine["name"], engine["mode"], engine["status"]) for engine in engines] == [
        ("dask", "embedded", "up"),
        ("ray", "embedded", "up"),
    ]
    assert all(engine["workers"] for engine in engines)


def test_each_engine_has_its_own_workers(two):
    assert Counter(workers_of(two).values()) == {"dask": 2, "ray": 2}


def test_every_backend_but_cuda_is_available(two):
    for operation in two.get("/capabilities").json()["operations"]:
        assert [operation["backends"][name]["available"] for name in ("cpu", "dask", "ray")] == [True] * 3


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_job_goes_to_the_engine_of_its_backend(two, backend):
    execution = {"backend": backend, "fallback": "forbid"}
    job = two.submit(profile() | {"execution": execution}, Prefer="wait=60")
    assert (job["state"], job["plan"]["backend"], job["plan"]["fallback"]) == ("succeeded", backend, None)
    [placed] = [event["data"]["worker"] for event in two.events(job["id"]) if event["data"].get("to") == "running"]
    assert workers_of(two)[placed] == backend
    assert job["plan"]["estimate"]["actual_seconds"] > 0
    verdicts = {each["id"]: each["verdict"] for each in two.get(job["links"]["explain"]).json()["workers"]}
    others = [worker for worker, engine in workers_of(two).items() if engine != backend]
    assert len(others) == 2
    assert all("and the job runs on" in verdicts[other] for other in others)


def test_probes_are_asked_of_the_workers_of_both(two):
    job = two.post("/capabilities/probes", json={"check": "cpu"}, headers={"Prefer": "wait=60"}).json()
    assert job["state"] == "succeeded", job
    assert set(job["result"]["workers"]) == set(workers_of(two))
    assert all(answer["probes"] and not answer["error"] for answer in job["result"]["workers"].values())


def test_both_are_gone_with_the_server(both_engines, two):
    """The last test of its server."""
    family = both_engines.house.family()
    assert both_engines.house.end() == 0
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
