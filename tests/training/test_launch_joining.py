"""When a worker is ready to train, and how the server hears of it."""

import threading
import time
from datetime import UTC, datetime

import pytest

from tests.house import eventually
from workers import joining, probe
from workers.agent import Agent
from workers.contract import Join, Outcome, Probe, ReportAnswer
from workers.environment import training_warms
from workers.executions import Execution
from workers.host import TRAINING, Host


def found(name: str, evidence: str = "executed") -> Probe:
    return Probe(name=name, evidence=evidence, detail="…", seconds=0.1, at=datetime.now(UTC))


class Link:
    """The server, as an agent has it."""

    def __init__(self) -> None:
        self.joined: list[list[str]] = []
        self.reports = 0
        self.told: list[str] = []

    def join(self, introduction: Join) -> None:
        self.joined.append([f"{each.name} {each.evidence}" for each in introduction.probes])

    def report(self, worker, report) -> ReportAnswer:
        self.reports += 1
        self.told += [f"{outcome.attempt} {outcome.end}" for outcome in report.outcomes]
        return ReportAnswer(acknowledged=[outcome.attempt for outcome in report.outcomes], stop=[])

    def leave(self, worker) -> None:
        self.told.append("goodbye")


@pytest.fixture
def link():
    return Link()


@pytest.fixture
def agent(link):
    join = Join(
        id="wk_1",
        engine="dask",
        address="tcp://127.0.0.1:1",
        host="here",
        pid=1,
        resources={"CPU": 1},
        threads=1,
        memory_bytes=1,
        cpu={},
        gpus=[],
        versions={},
        probes=[found("cpu"), found("training", "absent")],
        speed={},
    )
    agent = Agent(link, join, lambda check: [])
    agent.start()
    yield agent
    agent.close()


def test_what_is_found_after_joining_is_told_by_joining_again(agent, link):
    eventually(lambda: link.reports)
    agent.add_probes([found("training"), found("training/trainer/ddp")])
    eventually(lambda: len(link.joined) == 2, 5)
    assert link.joined == [
        ["cpu executed", "training absent"],
        ["cpu executed", "training executed", "training/trainer/ddp executed"],
    ]


class ColdHost(Host):
    def __init__(self) -> None:
        super().__init__({}, devices=())
        self.asked: list[str] = []

    def nursery_for(self, device, unless=None):
        self.asked.append(device)


def test_a_worker_that_has_joined_warms_itself_for_training_and_probes(agent, link, monkeypatch):
    monkeypatch.setattr(probe, "call_by_name", lambda function, host: [found("training")])
    host = ColdHost()
    thread = threading.Thread(target=joining._prepare_to_train, args=(agent, host))
    thread.start()
    thread.join(10)
    assert host.asked == [TRAINING]
    eventually(lambda: link.joined[-1] == ["cpu executed", "training executed"], 5)


@pytest.mark.parametrize(("value", "warms"), [("", True), ("yes", True), ("No", False), ("0", False), ("false", False)])
def test_warming_can_wait_for_the_first_job(monkeypatch, value, warms):
    monkeypatch.setenv("TIDEMILL_TRAINING_WARM", value)
    assert training_warms() is warms


def test_probes_of_training_that_cannot_run_say_why(monkeypatch):
    def no_torch(function, host):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(probe, "call_by_name", no_torch)
    (only,) = probe.run_probes(ColdHost(), probe.TRAINING)
    assert (only.name, only.evidence) == ("training", "absent")
    assert "No module named 'torch'" in only.detail


@pytest.mark.parametrize(("end", "told"), [("stopped", ["goodbye"]), ("succeeded", ["att_1 succeeded", "goodbye"])])
def test_a_worker_that_leaves_lets_a_training_write_its_checkpoint_first(agent, link, end, told):
    eventually(lambda: link.reports)
    reports = link.reports
    training = Execution("att_1", "claim", stop=lambda: None, grace_seconds=5)
    other = Execution("att_2", "claim", stop=lambda: None)
    ended = Outcome(attempt="att_1", claim="claim", end=end)
    for execution in (training, other):
        agent.begin(execution)

    def write_a_checkpoint():
        training.stopping.wait(10)
        time.sleep(0.3)
        agent.deliver(training, ended)

    thread = threading.Thread(target=write_a_checkpoint)
    thread.start()
    agent.close()
    thread.join(5)
    assert link.told == told  # told of a stop before it has left, the server would place it here again
    assert link.reports > reports  # but what it had to say is said
    assert other.stopping.is_set()


def test_a_worker_that_leaves_does_not_wait_for_ever(agent, link):
    eventually(lambda: link.reports)
    agent.begin(Execution("att_1", "claim", stop=lambda: None, grace_seconds=0.5))
    with agent.piece("att_2", "claim", grace_seconds=0.5) as ticket:
        started = time.monotonic()
        agent.close()
        assert time.monotonic() - started < 3
        assert ticket.stopping.is_set()
    assert link.told[0] == "goodbye"
