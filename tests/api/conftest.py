"""Fixtures of the contract's tests: datasets that are there, and long jobs that are gone afterwards."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.asking import CSV, profile, table
from tests.api.keyring import Keyring
from tests.house import Api, House, long_series, running


@pytest.fixture(scope="session")
def long_dataset(api: Api) -> str:
    """A dataset whose profile takes many seconds."""
    answer = api.post("/datasets?name=long.npy", content=long_series(), headers={"content-type": "application/x-npy"})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


@pytest.fixture
def long_job(api: Api, long_dataset: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """Submits jobs that run for many seconds, each on one worker; what still runs after the test is cancelled."""
    made: list[str] = []

    def submit(**fields: Any) -> dict[str, Any]:
        body = profile(window=100, series={"dataset": long_dataset}) | {
            "execution": {"backend": "cpu", "implementation": "stumpy"}
        }
        job = api.submit({**body, **fields})
        made.append(job["id"])
        return job

    yield submit
    for job_id in made:
        api.post(f"/jobs/{job_id}/cancel")
    for job_id in made:
        if api.get(f"/jobs/{job_id}").status_code == 200:
            api.until(job_id, "succeeded", "failed", "cancelled")


@pytest.fixture
def both_busy(api: Api, long_job: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Two running jobs, so that every worker is taken and what comes next waits."""
    return [api.until(job["id"], "running") for job in [long_job(priority=100), long_job(priority=100)]]


@pytest.fixture(scope="session")
def finished(api: Api) -> dict[str, Any]:
    """A succeeded job."""
    job = api.submit(profile(), Prefer="wait=60")
    assert job["state"] == "succeeded", job
    return job


@pytest.fixture(scope="session")
def dated(api: Api) -> dict[str, Any]:
    """A dataset with a time column, a numeric one and a text one."""
    answer = api.post("/datasets?name=dated.csv", content=table(), headers={"content-type": CSV})
    assert answer.status_code in (200, 201), answer.text
    dataset: dict[str, Any] = answer.json()
    return dataset


@pytest.fixture(scope="session")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyring]:
    """A server with AUTH=keys, in a HOME whose path is longer than that of a socket may be."""
    home = tmp_path_factory.mktemp("keys") / ("deep" * 30) / "home"
    home.parent.mkdir()
    environment = {
        "TIDEMILL_AUTH": "keys",
        "TIDEMILL_WORKERS": "1",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true",
    }
    with running(House(home, environment)) as house:
        keyring = Keyring(house)
        yield keyring
        for client in keyring.clients:
            client.close()


@pytest.fixture(scope="session")
def root(keyring: Keyring) -> Api:
    """A client with an admin's key; the first key there is, made while the server runs."""
    return keyring.client(keyring.first("root", "admin"))
