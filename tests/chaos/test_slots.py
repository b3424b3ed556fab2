"""Slots are leases: what a cancel frees is used again within a second, one worker or a whole gang of them."""

from datetime import datetime

import pytest

from tests.chaos.acts import SMALL, computing, submit_long
from tests.house import eventually

ON_ONE = {"backend": "cpu", "fallback": "forbid"}
WAVE = [float((i * i) % 23) for i in range(120)]


def moment(api, job_id: str, state: str) -> datetime:
    """When a job came to be in a state, by its own log."""
    changes = [each for each in api.events(job_id) if each["type"] == "state" and each["data"]["to"] == state]
    return datetime.fromisoformat(changes[-1]["at"])


def gang() -> dict:
    """A training job on two nodes that would go on for hours."""
    config = {
        "trainer": {"accelerator": "cpu", "num_nodes": 2, "strategy": "ddp", "max_epochs": 100_000},
        "model": {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 2}},
        "data": {
            "class_path": "workers.training.data.SeriesWindows",
            "init_args": {"series": {"values": WAVE}, "context": 8},
        },
    }
    return {"kind": "training", "params": {"config": config}}


def test_what_a_cancel_frees_runs_the_next_job_within_a_second(two):
    with two.api() as api:
        both = [submit_long(two, execution=ON_ONE)[0] for _ in range(2)]
        for job_id in both:
            eventually(lambda job_id=job_id: computing(api, job_id), 40)
        third = api.submit(SMALL)
        said = api.get(third["links"]["explain"]).json()
        assert (said["state"], said["never"]) == ("queued", None)
        assert "it waits for room" in said["summary"]
        assert api.post(f"/jobs/{both[0]}/cancel").status_code == 202
        api.until(both[0], "cancelled")
        assert api.until(third["id"], "succeeded", seconds=30)["attempt"] == 1
        waited = moment(api, third["id"], "running") - moment(api, both[0], "cancelled")
        assert 0 <= waited.total_seconds() < 1
        api.post(f"/jobs/{both[1]}/cancel")
        api.until(both[1], "cancelled")


@pytest.mark.timeout(240)
def test_what_a_cancelled_gang_frees_starts_the_next_gang_whole_within_a_second(two):
    with two.api() as api:
        first, second = (api.submit(gang())["id"] for _ in range(2))
        eventually(lambda: api.job(first)["phase"] == "training", 120)
        small = api.submit(SMALL)["id"]
        said = api.get(f"/jobs/{second}/explain").json()
        assert (said["state"], said["never"]) == ("queued", None)
        assert "until 2 workers of one cluster are free at once" in said["summary"]
        api.post(f"/jobs/{first}/cancel")
        api.until(first, "cancelled")
        api.until(second, "running")
        waited = moment(api, second, "running") - moment(api, first, "cancelled")
        assert 0 <= waited.total_seconds() < 1
        [started] = [e["data"] for e in api.events(second) if e["type"] == "state" and e["data"]["to"] == "running"]
        assert len(set(started["workers"])) == 2
        assert api.job(small)["state"] == "queued"  # it came later, and a gang is placed whole
        api.post(f"/jobs/{second}/cancel")
        api.until(second, "cancelled")
        api.until(small, "succeeded")
