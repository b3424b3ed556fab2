"""The same hosts with Ray between them: a head and a worker on one, a node and a worker on the other, the server on a third."""

import secrets

import pytest

from tests.cluster import jobs
from tests.cluster.cluster import BOTH, ONE, SERVER, TWO, Cluster, workers_up

pytestmark = pytest.mark.timeout(480)  # the first of them may have to compile
ENGINE = "ray"
EVERYWHERE = "on all three, for Ray"
TOKEN = "/srv/ray-token"


@pytest.fixture(scope="module")
def cluster(empty: Cluster) -> Cluster:
    token = secrets.token_hex(32)
    for host, address in ((empty.one, ONE), (empty.two, TWO), (empty.server, SERVER)):
        host.run(f"umask 077; echo {token} > {TOKEN}")
        empty.start(host, EVERYWHERE, f"on {address}, for Ray")
    empty.serve(EVERYWHERE, f"on {SERVER}, the server on Ray")
    empty.make_key()
    for host in (empty.one, empty.two):
        empty.join(host, EVERYWHERE, f"{BOTH}, workers on Ray")
    empty.wait_until_whole()
    return empty


def test_a_profile_is_spread_over_two_hosts(api):
    assert {worker["host"]: worker["storage"] for worker in workers_up(api)} == {"one": "http", "two": "http"}
    job = jobs.ended_well(api, jobs.long_profile(api, jobs.SPREAD, backend="ray", implementation="tiles"))
    jobs.is_right(api, job, jobs.SPREAD)
    assert (job["attempt"], job["plan"]["backend"], job["plan"]["workers"]) == (1, "ray", 2)
    pieces = api.get(job["links"]["result"]).json()["provenance"]["pieces_by_worker"]
    assert len(pieces) == 2
    assert min(pieces.values()) > 0


def test_two_hosts_train_one_model(api, trainers):
    job = trainers.run(trainers.body(trainer={"num_nodes": 2, "strategy": "ddp"}))
    jobs.ended_well(api, job["id"])
    assert (job["plan"]["backend"], job["result"]["world_size"]) == ("ray", 2)
    assert sorted(jobs.hosts_of(api, job["id"])) == ["one", "two"]
    losses = [loss for _, loss in trainers.metric(job["id"], "train_loss")]
    assert losses[-1] < losses[0]
    assert "last.ckpt" in trainers.artifacts(job["id"])
