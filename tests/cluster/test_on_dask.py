"""A cluster on hosts of its own, on Dask: scheduler and one worker on one, the other worker on another, the server on a third.

No folder is shared. Every kind runs; links are cut, workers and the server killed, in the middle of jobs; each ends once, and right.
"""

import hashlib
import math
import time

import numpy as np
import pytest

from tests.cluster import jobs
from tests.cluster.cluster import ONE, TWO, Client, Cluster, workers_up
from tests.cluster.commands import commands
from tests.house import eventually
from tests.processes import at_work
from tests.test_families import FAMILIES
from tests.training.cases import STEPS
from tests.training.yard import Trainers

pytestmark = pytest.mark.timeout(480)  # the first of them may have to compile
ENGINE = "dask"
CUT_SECONDS = 30
CATCH_UP_SECONDS = 120
"""After a cut: TCP doubles its pauses, so that it may try for the first time half a minute after the link is whole."""


@pytest.fixture(scope="module")
def made(empty: Cluster) -> Cluster:
    empty.serve()
    empty.make_key()
    empty.start(empty.one, f"on {ONE}")
    empty.join(empty.one)
    empty.join(empty.two)
    return empty


@pytest.fixture
def cluster(made: Cluster) -> Cluster:
    """With its server and both workers up, whatever the test before did to them."""
    made.wait_until_whole()
    return made


# ---- what there is ---------------------------------------------------------------------------------------------------


def test_hosts_of_their_own_share_no_folder(cluster, api):
    workers = {worker["host"]: worker for worker in workers_up(api)}
    assert {name: worker["address"].rpartition(":")[0] for name, worker in workers.items()} == {
        "one": f"tcp://{ONE}",
        "two": f"tcp://{TWO}",
    }
    assert {name: worker["storage"] for name, worker in workers.items()} == {"one": "http", "two": "http"}
    assert cluster.server_has("/srv/tidemill/tidemill.db")
    for host in (cluster.one, cluster.two):
        assert "tidemill.db" not in host.run("ls -R /srv /tmp /dev/shm /run")
        assert "Read-only" in host.run("touch README.md 2>&1 || true")


def test_the_commands_of_a_client_run_as_they_stand(cluster):
    """Those who are on none of the hosts have an address of the network, and a key."""
    said = cluster.beside(commands("from anywhere"))
    assert '"engines"' in said


# ---- every kind ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset(made: Cluster) -> str:
    with made.api() as api:
        return jobs.small_dataset(api)


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_kind_is_right_on_one_host_and_over_both(api, dataset, kind):
    started = [api.submit(jobs.kind_of(kind, dataset, backend))["id"] for backend in ("cpu", "dask")]
    for job_id, backend in zip(started, ("cpu", "dask"), strict=True):
        job = jobs.ended_well(api, job_id)
        result = {**api.get(job["links"]["result"]).json(), "job": job}
        np.testing.assert_allclose(FAMILIES[kind].found(result), FAMILIES[kind].truth({}), rtol=1e-9, atol=1e-7)
        assert (job["attempt"], job["plan"]["backend"], job["plan"]["fallback"]) == (1, backend, None)
        kept = api.get(f"/jobs/{job_id}/artifacts").json()["items"]
        assert kept
        for each in kept:
            content = api.get(f"/jobs/{job_id}/artifacts/{each['name']}").content
            assert (len(content), hashlib.sha256(content).hexdigest()) == (each["bytes"], each["sha256"])
        assert api.get(f"/jobs/{job_id}/logs").text.strip()


def test_every_host_is_probed_again_from_afar(api):
    job = api.post("/capabilities/probes", json={"check": "cpu"}, headers={"Prefer": "wait=60"}).json()
    assert job["state"] == "succeeded", job
    assert set(job["result"]["workers"]) == {worker["id"] for worker in workers_up(api)}


# ---- training --------------------------------------------------------------------------------------------------------


def test_two_hosts_train_as_two_processes_of_one_do(api, trainers):
    """Each node fetches the series for itself; the gradients meet over gloo."""
    hours = [math.sin(i * math.tau / 24) + i / 500 + 0.1 * math.sin(i * 1.7) for i in range(840)]
    dataset = jobs.upload(api, "hours.csv", "\n".join(["load", *map(repr, hours), ""]).encode())
    data = {"series": {"dataset": dataset, "column": "load"}, "context": 48}
    config = {
        "model": {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 24, "season": 24}},
        "data": {"class_path": "workers.training.data.SeriesWindows", "init_args": data},
    }
    found = {
        nodes: trainers.run(
            trainers.body(trainer={"num_nodes": nodes, "devices": 2 // nodes, "strategy": "ddp"}, config=config)
        )
        for nodes in (1, 2)
    }
    assert [job["result"]["world_size"] for job in found.values()] == [2, 2]
    assert sorted(jobs.hosts_of(api, found[2]["id"])) == ["one", "two"]
    one, two = (job["result"]["metrics"] for job in found.values())
    assert one["val_loss"] > 0
    assert two["val_loss"] == pytest.approx(one["val_loss"], rel=1e-6)
    assert trainers.metric(found[2]["id"], "train_loss") == [
        (step, pytest.approx(loss, rel=1e-6)) for step, loss in trainers.metric(found[1]["id"], "train_loss")
    ]
    assert {"last.ckpt", "metrics.csv", found[2]["result"]["best"]} <= set(trainers.artifacts(found[2]["id"]))
    for rank in (0, 1):
        assert api.get(f"/jobs/{found[2]['id']}/logs", params={"rank": rank}).text.strip()


def long_training(trainers: Trainers, epochs: int) -> str:
    """Begin a training over both hosts that takes its time, with a checkpoint every second; its id once it has made some steps."""
    trainer = {"num_nodes": 2, "strategy": "ddp", "max_epochs": epochs}
    job = trainers.start(trainers.body(init={"seconds": 0.1}, trainer=trainer, params={"checkpoint_seconds": 1.0}))
    eventually(lambda: len(trainers.metric(job, "train_loss")) >= 20, 60)
    return job


def trained_every_step(trainers: Trainers, job: dict, epochs: int) -> None:
    steps = [step for step, _ in trainers.metric(job["id"], "train_loss")]
    assert steps == list(range(steps[0], steps[0] + epochs * STEPS // 2))
    assert job["result"]["steps"] == epochs * STEPS // 2


def test_after_a_nodes_worker_is_killed_training_goes_on_from_its_checkpoint(cluster, api, trainers):
    job_id = long_training(trainers, 16)
    _, other = jobs.hosts_of(api, job_id)  # not the home, whose loss the server sees before anybody else
    cluster.worker(other).kill()
    cluster.join(cluster.network.hosts[other])
    job = jobs.ended_well(api, job_id)
    trained_every_step(trainers, job, 16)
    assert job["attempt"] == 2, jobs.states(api.events(job_id))
    assert "Goes on from 1/last.ckpt" in api.get(f"/jobs/{job_id}/logs").text
    assert sorted(jobs.hosts_of(api, job_id)) == ["one", "two"]


# ---- what may happen to profiles -------------------------------------------------------------------------------------


def host_of(api: Client, job_id: str) -> str:
    """Where its last attempt runs."""
    return jobs.hosts_of(api, job_id)[0]


@pytest.fixture
def under_way(api: Client) -> tuple[str, str]:
    """A profile that host two computes alone, and one that is spread over both, with its home on host one; in the middle of both."""
    first, second = (jobs.long_profile(api, jobs.ALONE, backend="cpu", implementation="stumpy") for _ in "ab")
    eventually(lambda: all(api.job(each)["phase"] == "computing" for each in (first, second)), 60)
    alone, other = (first, second) if host_of(api, first) == "two" else (second, first)
    assert api.post(f"/jobs/{other}/cancel").status_code == 202
    spread = jobs.long_profile(api, jobs.SPREAD, backend="dask", implementation="tiles")
    eventually(lambda: api.job(spread)["progress"]["fraction"] > 0.05, 60)
    assert (host_of(api, alone), host_of(api, spread)) == ("two", "one")
    return alone, spread


def both_end_well(api: Client, under_way: tuple[str, str], seconds: float) -> tuple[int, int]:
    """Both jobs end once, with the right profile; the attempts that each took."""
    alone, spread = (jobs.ended_well(api, each, seconds) for each in under_way)
    jobs.is_right(api, alone, jobs.ALONE)
    jobs.is_right(api, spread, jobs.SPREAD)
    return alone["attempt"], spread["attempt"]


def test_a_cancel_holds_on_both_hosts(cluster, api, under_way):
    for job_id in under_way:
        assert api.post(f"/jobs/{job_id}/cancel").status_code == 202
    for job_id in under_way:
        api.until(job_id, "cancelled", seconds=10)
    eventually(lambda: not any(computes(cluster, host) for host in ("one", "two")), 10)


def computes(cluster: Cluster, host: str) -> bool:
    return at_work(cluster.workers[host].family)


def test_a_killed_worker_costs_an_attempt_of_its_own_job_and_pieces_of_the_other(cluster, api, under_way):
    cluster.worker("two").kill()
    cluster.join(cluster.two)
    assert both_end_well(api, under_way, 150) == (2, 1)


def test_a_killed_server_is_not_noticed(cluster, api, under_way):
    before = {worker["id"] for worker in workers_up(api)}
    cluster.kill_server()
    cluster.serve()
    cluster.wait_until_whole()
    assert {worker["id"] for worker in workers_up(api)} == before
    assert both_end_well(api, under_way, 150) == (1, 1)


def test_a_link_that_is_cut_for_half_a_minute_costs_that_time_alone(cluster, api, under_way):
    before = {worker["id"] for worker in workers_up(api)}
    cluster.two.cut()
    time.sleep(CUT_SECONDS)
    seen = [api.job(each)["state"] for each in under_way]
    cluster.two.heal()
    assert seen == ["running", "running"]
    assert both_end_well(api, under_way, CATCH_UP_SECONDS) == (1, 1)
    assert {worker["id"] for worker in workers_up(api)} == before


def test_a_link_that_is_cut_under_two_ranks_costs_no_step(cluster, api, trainers):
    job_id = long_training(trainers, 16)
    cluster.two.cut()
    time.sleep(CUT_SECONDS)
    seen = api.job(job_id)["state"]
    cluster.two.heal()
    assert seen == "running"  # it would have ended long ago
    job = jobs.ended_well(api, job_id, CATCH_UP_SECONDS)
    trained_every_step(trainers, job, 16)
    assert job["attempt"] == 1, jobs.states(api.events(job_id))
