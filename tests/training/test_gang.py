"""A training attempt on one and on several nodes, with stand-ins for ranks: all begin or none, all end, and the job is told how.

The cluster here is this process: two workers' names, each with a Host of its own.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import ClassVar

import psutil
import pytest

from tests.house import eventually
from workers import agent as agents
from workers.agent import Agent
from workers.contract import Node, Task, TrainingTask, call_by_name
from workers.executions import Execution
from workers.host import TRAINING, Host
from workers.nursery_client import Nursery, NurseryGone
from workers.spread.base import CallFailed, WorkerGone
from workers.training import drive as driving
from workers.training import gang as gangs
from workers.training import node_remote
from workers.training.drive_judge import Failed, Stopped

ERRANDS = "tests.training.errands"
pytestmark = pytest.mark.usefixtures("light")


class Here:
    """The cluster: what is called on a worker is called in a thread of this process, with that worker's host for its own."""

    def __init__(self, hosts: dict[str, Host], reached_by: str = "127.0.0.1") -> None:
        self.hosts, self.gone, self.closed, self._reached_by = hosts, set(), False, reached_by
        self.open: list[tuple[str, Future]] = []
        self.calls: list[str] = []

    def call(self, address, function, arguments):
        future: Future = Future()
        self.open.append((address, future))
        self.calls.append(function)
        if address in self.gone:
            future.set_exception(WorkerGone("it left"))
            return future

        def body():
            here.host = self.hosts[address]
            try:
                value = call_by_name(function, *arguments)
            except Exception as fault:
                self._settle(future, CallFailed(f"{type(fault).__name__}: {fault}"))
            else:
                if not future.done():
                    future.set_result(value)

        threading.Thread(target=body, daemon=True).start()
        return future

    def _settle(self, future, fault):
        if not future.done():
            future.set_exception(fault)

    def lose(self, address):
        self.gone.add(address)
        for where, future in self.open:
            if where == address:
                self._settle(future, WorkerGone("it left"))

    def reached_by(self):
        return self._reached_by

    def close(self):
        self.closed = True


here = threading.local()
numbers = itertools.count(1)


def nursery_of_errands() -> Nursery:
    return Nursery([f"{ERRANDS}:warm_nothing"], {})


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, Host]]:
    made = {name: Host({}, devices=()) for name in ("a", "b")}
    for host in made.values():
        host._nurseries[TRAINING] = nursery_of_errands()
    yield made
    for host in made.values():
        host.close()


@pytest.fixture
def light(monkeypatch):
    """Preparing needs no torch here, and a worker's own host is that of the thread that asks."""
    monkeypatch.setattr(driving, "PREPARE", f"{ERRANDS}:prepare")
    monkeypatch.setattr("workers.training.keeper.KEEP", f"{ERRANDS}:keep")
    monkeypatch.setattr(node_remote, "current_host", lambda: here.host)


@pytest.fixture
def agent(monkeypatch) -> Agent:
    agent = Agent.__new__(Agent)
    Agent.__init__(agent, None, type("Introduction", (), {"id": "wk_here", "engine": "dask"}), lambda check: [])
    agents._introduced.set()
    monkeypatch.setattr(agents, "_current", agent)
    return agent


class Job:
    sources: ClassVar = {"/config/data/init_args/x": []}
    """So that there is something to prepare."""

    def __init__(self, agent, hosts, folder, nodes=1, devices=2, hostnames=("one", "one"), **params) -> None:
        self.agent, self.hosts, self.folder = agent, hosts, folder
        self.cluster = Here(hosts)
        self.events: list[dict] = []
        resolved = {
            "accelerator": "cpu",
            "devices": devices,
            "num_nodes": nodes,
            "strategy": "ddp",
            "precision": "32-true",
            "world_size": nodes * devices,
        }
        self.task = Task(
            attempt=f"att_{next(numbers)}",
            job="job_1",
            kind="training",
            params={"config": {"trainer": {}}, **params},
            sources=self.sources,
            plan={"backend": "dask", "resolved": resolved},
            folder=str(folder),
            training=TrainingTask(
                nodes=[
                    Node(worker=f"wk_{name}", address=name, host=host, threads=2)
                    for name, host in zip("ab"[:nodes], hostnames, strict=False)
                ]
            ),
        )
        self.execution = Execution(attempt=self.task.attempt, claim="claim", stop=lambda: None)

    def run(self, errand):
        before = {name: children(host) for name, host in self.hosts.items()}
        try:
            return driving.drive(
                self.agent,
                self.hosts["a"],
                self.task,
                self.execution,
                lambda event: self.take(event),
                lambda: self.cluster,
                errand if ":" in errand else f"{ERRANDS}:{errand}",
            )
        finally:
            if not self.cluster.gone:
                assert {name: children(host) for name, host in self.hosts.items()} == before
                assert not node_remote._stations

    def take(self, event) -> None:
        self.events.append(event)

    def begin(self, errand) -> tuple[threading.Thread, list]:
        ends: list = []

        def body():
            try:
                ends.append(self.run(errand))
            except Exception as end:
                ends.append(end)

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread, ends

    def running(self, ranks: int) -> bool:
        return sum(len(children(host)) for host in self.hosts.values()) >= ranks + 1  # and the keeper

    def lines(self) -> str:
        return (self.folder / "log.txt").read_text()


def children(host: Host) -> set[int]:
    nursery = host._nurseries[TRAINING]
    try:
        return {each.pid for each in psutil.Process(nursery.process.pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


@pytest.fixture
def job(agent, hosts, tmp_path):
    return lambda **about: Job(agent, hosts, tmp_path, **about)


def test_a_job_that_finishes_leaves_its_files(job):
    found = job().run("finish")
    assert found["summary"] == {"metrics": {}}
    assert found["provenance"]["implementation"] == "errand"
    assert [node["worker"] for node in found["provenance"]["nodes"]] == ["wk_a"]
    assert [artifact["name"] for artifact in found["artifacts"]] == [
        "log.txt",
        "rank-0.log",
        "rank-1.log",
        "result.json",
    ]


def test_an_end_in_good_order_without_a_result_is_no_success(job):
    with pytest.raises(Failed) as failure:
        job().run("finish_without_evidence")
    assert "without a result" in failure.value.problem["detail"]


def test_every_rank_is_told_its_place_in_the_world(job, tmp_path):
    job(nodes=2).run("tell_place")
    told = [(tmp_path / f"place-{rank}").read_text().split() for rank in range(4)]
    assert [line[:5] for line in told] == [
        ["0", "0", "0", "2", "1"],
        ["1", "1", "0", "2", "1"],
        ["2", "0", "1", "2", "1"],
        ["3", "1", "1", "2", "1"],
    ]
    assert {line[5] for line in told} == {"127.0.0.1"}
    assert {line[6] for line in told} == {"lo"}
    assert len({line[7] for line in told}) == 1  # one port
    assert len({line[8] for line in told}) == 1  # one seed


def test_two_nodes_begin_and_end_together(job):
    one = job(nodes=2, devices=1)
    assert one.run("finish")["summary"] == {"metrics": {}}
    assert one.cluster.closed
    assert not one.agent._tickets


def test_the_cause_on_another_node_is_the_jobs(job):
    with pytest.raises(Failed) as failure:
        job(nodes=2, devices=1).run("raise_on_one")
    assert failure.value.problem["detail"] == "ValueError: the loss is a banana"
    assert failure.value.problem["rank"] == 1


def test_what_ranks_of_other_nodes_say_is_heard(job):
    one = job(nodes=2, devices=1)
    one.run("talk")
    said = {event["data"]["message"] for event in one.events if event["type"] == "log"}
    assert {"this is rank 0", "this is rank 1"} <= said
    assert not [event for event in one.events if event["type"] == "beat"]


def test_what_is_no_event_does_not_become_one_and_an_event_that_is_not_taken_ends_nothing(job):
    one = job(nodes=2, devices=1)

    def relay(message):
        Job.take(one, message)
        raise ValueError("not today")

    one.take = relay
    assert one.run("scribble")["summary"] == {"metrics": {}}
    assert [event["data"] for event in one.events] == [
        {"phase": "preparing"},
        {"message": "Nothing was to prepare."},
        {"phase": "starting"},
    ]


def test_a_stop_is_asked_of_all_ranks_and_keeps_the_checkpoint(job):
    one = job(nodes=2, devices=1)
    thread, ends = one.begin("train")
    eventually(lambda: one.running(2))
    one.execution.stopping.set()
    thread.join(10)
    assert isinstance(ends[0], Stopped)
    assert "last.ckpt" in [artifact["name"] for artifact in ends[0].artifacts]


def test_a_stop_of_ranks_that_do_not_hear_it_takes_less_than_ten_seconds(job):
    one = job(nodes=2, devices=1)
    thread, ends = one.begin("ignore_term")
    eventually(lambda: one.running(2 * 3), 20)
    started = time.monotonic()
    one.execution.stopping.set()
    thread.join(15)
    assert isinstance(ends[0], Stopped)
    assert time.monotonic() - started < 10


def test_a_worker_that_leaves_has_less_time(job):
    one = job()
    thread, ends = one.begin("ignore_term")
    eventually(lambda: one.running(2 * 3), 20)
    started = time.monotonic()
    one.agent.closing.set()
    thread.join(15)
    assert isinstance(ends[0], Stopped)
    assert time.monotonic() - started < 4


def test_a_stop_before_the_ranks_are_there(job):
    one = job()
    one.execution.stopping.set()
    with pytest.raises(Stopped):
        one.run("finish")


def test_a_worker_that_is_lost_ends_the_others_and_the_job_may_be_tried_again(job):
    one = job(nodes=2, devices=1)
    thread, ends = one.begin("train")
    eventually(lambda: one.running(2))
    one.cluster.lose("b")
    thread.join(15)
    assert isinstance(ends[0], NurseryGone)
    assert "lost" in str(ends[0])
    eventually(lambda: not children(one.hosts["a"]), 10)
    # There it is the server that says so: its report's answer stops the piece.
    (ticket,) = one.agent._tickets
    ticket.stop()
    eventually(lambda: not children(one.hosts["b"]) and not node_remote._stations, 10)


def test_a_worker_that_the_server_counts_as_lost_is(job):
    one = job(nodes=2, devices=1)
    thread, ends = one.begin("train")
    eventually(lambda: one.running(2))
    one.agent.peers = {"a": 1}
    thread.join(15)
    assert isinstance(ends[0], NurseryGone)
    eventually(lambda: not node_remote._stations, 10)


def test_a_gang_that_is_not_complete_in_time_does_not_begin(job, hosts, monkeypatch):
    monkeypatch.setattr(gangs, "HERE_SECONDS", 0.5)
    one = job(nodes=2, devices=1)
    with hosts["b"].slot.whole(threading.Event()), pytest.raises(NurseryGone, match="ready within"):
        one.run("finish")
    assert not list(one.folder.glob("rank-*.log"))


def test_a_driver_that_falls_silent_is_not_waited_for(job, monkeypatch):
    monkeypatch.setattr(node_remote, "SILENCE_SECONDS", 1.0)
    one = job(nodes=2, devices=1)
    thread, ends = one.begin("train")
    eventually(lambda: one.running(2))
    monkeypatch.setattr(node_remote.Station, "news", lambda *_: time.sleep(0.1) or [])
    thread.join(20)
    assert ends
    eventually(lambda: not node_remote._stations, 10)


def test_a_meeting_point_that_ends_fails_the_job_with_its_name(job, monkeypatch):
    monkeypatch.setattr("workers.training.keeper.KEEP", f"{ERRANDS}:keep_for_a_second")
    with pytest.raises(Failed) as failure:
        job().run("hang")
    assert failure.value.problem["type"] == "/problems/rendezvous-failed"


def test_machines_of_several_names_do_not_meet_at_the_loopback(job):
    with pytest.raises(Failed) as failure:
        job(nodes=2, devices=1, hostnames=("one", "two")).run("finish")
    assert failure.value.problem["type"] == "/problems/rendezvous-failed"
    assert "127.0.0.1" in failure.value.problem["detail"]


def test_a_hang_on_another_node_is_found(job):
    with pytest.raises(Failed) as failure:
        job(nodes=2, devices=1, start_seconds=1.0).run("hang")
    assert failure.value.problem["type"] == "/problems/training-hung"


def test_a_nursery_that_dies_loses_the_attempt(agent, tmp_path):
    host = Host({}, devices=())
    host._nurseries[TRAINING] = nursery_of_errands()
    one = Job(agent, {"a": host}, tmp_path)
    thread, ends = one.begin("train")
    eventually(lambda: one.running(2))
    host._nurseries[TRAINING].process.kill()
    thread.join(10)
    assert isinstance(ends[0], NurseryGone)
    host.close()
