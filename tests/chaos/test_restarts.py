"""No accepted job is ever lost: servers killed, restarted and stopped in the middle of things."""

from collections.abc import Iterator

import pytest

from tests.chaos.acts import SMALL, computing, ends, submit_long
from tests.house import House, eventually, running
from tests.processes import all_gone


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with one worker. Both tests kill it and start it again, so the second takes it as the first one left it."""
    environment = {"TIDEMILL_WORKERS": "1", "TIDEMILL_WORKER_THREADS": "1"}
    with running(House(tmp_path_factory.mktemp("small") / "home", environment)) as house:
        yield house


@pytest.fixture
def house(small: House) -> House:
    """The server, up and with nothing to do."""
    assert small.process is not None
    if small.process.poll() is not None:
        small.start()
    with small.api() as api:
        for state in ("running", "queued"):
            assert api.get("/jobs", params={"state": state}).json()["items"] == []
    return small


def test_what_was_accepted_survives_kill_9_and_sigterm(house):
    """One server, killed with -9 and later stopped, with a job in every stage at the moment it goes."""
    with house.api() as api:
        # The one worker computes; another job was accepted and waits; a third was cancelled while it waited.
        running_job, _ = submit_long(house, max_attempts=1)
        eventually(lambda: computing(api, running_job))
        accepted, cancelled = api.submit(SMALL)["id"], api.submit(SMALL)["id"]
        assert api.post(f"/jobs/{cancelled}/cancel").json()["state"] == "cancelled"
        assert api.job(accepted)["state"] == "queued"
    family = house.family()
    assert len(family) >= 4  # scheduler, worker, nursery, the child that computes
    house.kill()
    eventually(lambda: all_gone(family), 10)

    house.start()
    with house.api() as api:
        # A crash of the server's costs a job none of its attempts.
        job = api.until(running_job, "running")
        assert (job["attempt"], job["max_attempts"]) == (2, 1)
        eventually(lambda: computing(api, running_job))
        assert api.job(accepted)["state"] == "queued"
    family = house.family()
    assert house.end() == 0
    assert all_gone(family)

    house.start()
    with house.api() as api:
        assert api.until(running_job, "running")["attempt"] == 3
        assert api.post(f"/jobs/{running_job}/cancel").status_code == 202
        assert api.job(accepted, wait=30)["state"] == "succeeded"
        assert ends(api, accepted) == ["succeeded"]
        assert ends(api, cancelled) == ["cancelled"]
        assert ends(api, running_job) == ["cancelled"]
        seqs = [event["seq"] for event in api.events(accepted)]
        assert seqs == list(range(1, len(seqs) + 1))


def test_many_kills_lose_nothing_and_repeat_nothing(house):
    """A server killed while jobs arrive and run, and while a cancel has only been answered: each job ends once."""
    accepted: list[str] = []
    for _ in range(2):
        with house.api() as api:
            accepted += [api.submit(SMALL)["id"] for _ in range(15)]
            stopped, _ = submit_long(house, priority=100)
            eventually(lambda: computing(api, stopped))  # noqa: B023
            assert api.post(f"/jobs/{stopped}/cancel").status_code == 202
        house.kill()
        house.start()
        with house.api() as api:
            api.until(stopped, "cancelled")
            assert ends(api, stopped) == ["cancelled"]
    with house.api() as api:
        for job_id in accepted:
            assert api.job(job_id, wait=30)["state"] == "succeeded"
            assert ends(api, job_id) == ["succeeded"]
