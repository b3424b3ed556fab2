"""The whole launch with real ranks: a host's own training nursery, torch's store, gloo, Lightning."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psutil
import pytest

from tests.house import eventually, listening
from tests.processes import below
from tests.training.ranks import TOYS, config
from tests.training.test_gang import Job
from workers import agent as agents
from workers.agent import Agent
from workers.host import TRAINING, Host
from workers.training import node_remote, node_temporary
from workers.training.drive_judge import Failed, Stopped
from workers.training.metrics import read
from workers.training.node_messages import RANK
from workers.training.rules import DEFAULT_ALLOW


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host({}, devices=())
    host.nursery_for(TRAINING)
    yield host
    host.close()


@pytest.fixture
def train(host, tmp_path, monkeypatch):
    agent = Agent.__new__(Agent)
    Agent.__init__(agent, None, type("Introduction", (), {"id": "wk_here", "engine": "dask"}), lambda check: [])
    agents._introduced.set()
    monkeypatch.setattr(agents, "_current", agent)
    monkeypatch.setattr(node_remote, "current_host", lambda: host)
    yield lambda folder=tmp_path, **about: Training(agent, host, folder, **about)
    assert not below(host._nurseries[TRAINING].process.pid)


class Training(Job):
    sources: ClassVar = {}

    def __init__(self, agent: Agent, host: Host, folder: Path, told: dict, earlier=(), **about) -> None:
        super().__init__(agent, {"a": host, "b": OneSlot(host)}, folder, **about, config=told)
        more = {"allow": [*DEFAULT_ALLOW, TOYS], "earlier": list(earlier)}
        self.task = self.task.model_copy(update={"training": self.task.training.model_copy(update=more)})


class OneSlot(Host):
    """Another worker on the same nursery."""

    def __init__(self, host: Host) -> None:
        super().__init__({}, devices=())
        self._nurseries = host._nurseries


def test_the_warm_parent_has_one_thread_and_a_clean_environment(host):
    process = psutil.Process(host.nursery_for(TRAINING).process.pid)
    assert process.num_threads() == 1
    variables = process.environ()
    assert "OMP_NUM_THREADS" not in variables
    assert variables["OPENBLAS_NUM_THREADS"] == "1"
    assert not {name for name in variables if name.startswith("TIDEMILL_") and name != "TIDEMILL_CACHE_DIR"}


@pytest.mark.parametrize(("nodes", "devices"), [(1, 1), (1, 2), (2, 1)])
def test_ranks_train_together(train, nodes, devices):
    job = train(told=config(), nodes=nodes, devices=devices)
    if nodes * devices == 1:
        job.task.plan["resolved"]["strategy"] = "single_device"
    found = job.run(RANK)
    assert found["summary"]["world_size"] == nodes * devices
    assert found["provenance"]["implementation"] == "lightning"
    names = {artifact["name"] for artifact in found["artifacts"]}
    assert {"result.json", "metrics.csv", "log.txt", "rank-0.log", "last.ckpt"} <= names
    assert not [name for name in names if name.startswith(".")]


def test_a_stop_in_mid_epoch_leaves_a_checkpoint_from_which_the_next_attempt_goes_on(train, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir(), second.mkdir()
    job = train(first, told=config(max_epochs=100_000), nodes=2, devices=1)
    thread, ends = job.begin(RANK)
    eventually(lambda: len([event for event in job.events if event["type"] == "metric"]) > 20, 60)
    started = time.monotonic()
    job.execution.stopping.set()
    thread.join(15)
    assert isinstance(ends[0], Stopped), ends
    assert time.monotonic() - started < 10
    assert "last.ckpt" in {artifact["name"] for artifact in ends[0].artifacts}
    seen = max(row["step"] for row in read(first / "metrics.csv"))

    # The newest is cut off, as by a full disk; there is an older one.
    (whole,) = first.glob("epoch=*.ckpt")
    with open(first / "last.ckpt", "r+b") as cut:
        cut.truncate(1000)
    job = train(second, told=config(max_epochs=seen // 5 + 3), nodes=2, devices=1, earlier=[str(first)])
    found = job.run(RANK)
    assert found["provenance"]["started_from"] == f"1/{whole.name}"
    assert "Passed over the checkpoint 1/last.ckpt: it is not whole" in job.lines()
    assert f"Goes on from 1/{whole.name}." in job.lines()
    steps = [row["step"] for row in read(second / "metrics.csv") if "train_loss" in row]
    assert steps == sorted(set(steps))


def test_the_traceback_of_the_one_rank_that_raises_is_the_jobs(train):
    with pytest.raises(Failed) as failure:
        train(told=config("Raises", init={"at": 7, "rank": 1}), nodes=2, devices=1).run(RANK)
    problem = failure.value.problem
    assert problem["type"] == "/problems/training-failed"
    assert "the toy broke on purpose" in problem["detail"]
    assert "rank_toys.py" in problem["traceback"]
    assert problem["rank"] == 1
    assert {"log.txt", "rank-1.log", "metrics.csv"} <= {artifact["name"] for artifact in failure.value.artifacts}


def test_a_rank_that_is_killed_is_the_cause_and_its_loaders_go_with_it(train, tmp_path, monkeypatch):
    removed: list[tuple[str, list[str]]] = []

    def rmtree(folder, **about):
        removed.append((folder, os.listdir(folder)))
        shutil.rmtree(folder, **about)

    monkeypatch.setattr(node_temporary, "shutil", SimpleNamespace(rmtree=rmtree))
    init = {"at": 7, "rank": 1, "marker": str(tmp_path / ".died")}
    with pytest.raises(Failed) as failure:
        train(told=config("Dies", init=init, rows={"workers": 1}), devices=2).run(RANK)
    assert failure.value.problem["type"] == "/problems/rank-killed"
    assert failure.value.problem["rank"] == 1
    ((folder, left),) = removed
    assert [name for name in left if name.startswith("pymp-")]  # what multiprocessing of a killed rank leaves
    assert not os.path.exists(folder)


def test_nothing_of_it_listens_beyond_this_machine(train):
    job = train(told=config(max_epochs=100_000), devices=2)
    thread, ends = job.begin(RANK)
    eventually(lambda: [event for event in job.events if event["type"] == "metric"], 60)
    nursery = psutil.Process(job.hosts["a"].nursery_for(TRAINING).process.pid)
    addresses = listening(below(nursery))
    job.execution.stopping.set()
    thread.join(15)
    assert isinstance(ends[0], Stopped), ends
    assert {address.removeprefix("::ffff:") for address in addresses} <= {"127.0.0.1", "::1"}
