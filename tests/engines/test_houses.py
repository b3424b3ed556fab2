"""A whole server on Ray, as users have it: its jobs, its kill -9, its stop. (What Dask does in the same places, `tests/chaos` shows.)"""

import os
import subprocess
import sys
import time

import psutil
import pytest

from tests.chaos.acts import SMALL, computing, ends, submit_long
from tests.engines.rig import ray_folders
from tests.house import House, eventually, running
from tests.processes import all_gone, below

ONE = {"TIDEMILL_ENGINE": "ray", "TIDEMILL_WORKERS": "1", "TIDEMILL_WORKER_THREADS": "1"}


def actor_of(house: House) -> psutil.Process:
    (actor,) = [each for each in house.family() if each.name().startswith("ray::RayWorker")]
    return actor


def test_a_server_on_ray_keeps_its_jobs_whatever_is_killed(home):
    with running(House(home, ONE)) as house:
        with house.api() as api:
            assert api.submit(SMALL, Prefer="wait=60")["state"] == "succeeded"

            stopped, _ = submit_long(house)
            eventually(lambda: computing(api, stopped))
            assert api.post(f"/jobs/{stopped}/cancel").status_code == 202
            api.until(stopped, "cancelled", seconds=10)

            lost, _ = submit_long(house, max_attempts=2)
            eventually(lambda: computing(api, lost))
            actor = actor_of(house)
            family = [actor, *below(actor)]
            assert len(family) >= 3  # its nursery, and the child that computes
            actor.kill()
            eventually(lambda: all_gone(family), 10)
            eventually(lambda: (job := api.job(lost)) and job["attempt"] == 2 and job["phase"] == "computing", 90)
            assert any("left the cluster" in str(event["data"]) for event in api.events(lost))

        family = house.family()
        house.kill()
        eventually(lambda: all_gone(family), 10)
        eventually(lambda: not ray_folders(home / "ray"), 5)

        house.start()
        with house.api() as api:
            # A crash of the server's costs a job none of its attempts.
            job = api.until(lost, "running")
            assert (job["attempt"], job["max_attempts"]) == (3, 2)
            eventually(lambda: computing(api, lost), 60)
            assert api.post(f"/jobs/{lost}/cancel").status_code == 202
            api.until(lost, "cancelled", seconds=10)
            assert ends(api, lost) == ends(api, stopped) == ["cancelled"]
            resumed, _ = submit_long(house)
            eventually(lambda: computing(api, resumed))
        family = house.family()
        assert house.end() == 0
        assert all_gone(family)
        assert not ray_folders(home / "ray")
        assert "Traceback" not in house.words()


@pytest.mark.parametrize("engine", ["ray", "dask,ray"])
def test_a_server_stopped_while_its_engines_start_leaves_nothing(home, engine):
    house = House(home, {**ONE, "TIDEMILL_ENGINE": engine})
    house.process = subprocess.Popen(
        [sys.executable, "-m", "app", "--port", "0", "--home", str(home)], env={**os.environ, **house.environment}
    )
    eventually(lambda: ray_folders(home / "ray"))
    time.sleep(1)  # in the middle of Ray's own start
    family = house.family()
    house.process.terminate()
    assert house.process.wait(timeout=20) == 0
    assert all_gone(family)
    assert not ray_folders(home / "ray")
