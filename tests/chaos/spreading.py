"""Two workers of a cluster, seen from outside: which processes they are, what runs in them, and a third one."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator

import psutil

from tests.chaos.acts import process
from tests.house import House
from tests.processes import children


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
    return [child for nursery in children(worker, "workers.nursery") for child in children(nursery)]


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
