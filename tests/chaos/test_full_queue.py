"""A queue that is full says so, and takes jobs again once there is room."""

from tests.chaos.acts import SMALL
from tests.house import House, running


def test_more_jobs_than_the_queue_takes_are_refused_whole(home):
    with running(House(home, {"TIDEMILL_MAX_QUEUE": "2", "TIDEMILL_WORKERS": "1"})) as house, house.api() as api:
        refused = api.post("/jobs/batch", json={"jobs": [SMALL] * 3})
        assert refused.status_code == 429
        assert refused.json()["type"] == "/problems/queue-full"
        assert int(refused.headers["Retry-After"]) > 0
        assert api.get("/jobs").json()["items"] == []
        assert api.post("/jobs/batch", json={"jobs": [SMALL] * 2}).status_code == 202
