"""One job's pieces through the door, over a cluster and back: real nursery, real children, STUMPY's own distributed functions.

The cluster here is this process: what it cannot show (Dask, Ray, lost machines) stands in tests/chaos and tests/engines.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest

from tests.house import eventually
from workers import agent as agents
from workers import host as hosts
from workers.agent import Agent
from workers.environment import compute_environment
from workers.host import CPU, Host
from workers.nursery_client import PieceFailed
from workers.spread import piece
from workers.spread.base import Answer, WorkerGone
from workers.spread.door import Door
from workers.spread.parcel import Parcel
from workers.spread.spreading import Spreading

SERIES = np.random.default_rng(0).standard_normal(1200).cumsum()


class Here:
    """Two workers' names, one process behind both; `troubles` decides what happens to a piece instead of its computing."""

    def __init__(self, troubles=None):
        self.names, self.troubles, self.tries, self.closed = {"a", "b"}, dict(troubles or {}), [], False

    def workers(self):
        return set(self.names)

    def share(self, parcel):
        return parcel

    def submit(self, address, errand, shared, own):
        self.tries.append((errand.number, address))
        future = Future()

        def body():
            try:
                trouble = self.troubles.pop(errand.number, None)
                future.set_result(trouble() if trouble else piece.compute(errand, shared, own))
            except Exception as fault:
                future.set_exception(fault)

        threading.Thread(target=body, daemon=True).start()
        return future

    def close(self):
        self.closed = True


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host(compute_environment(threads=1))
    host.nursery_for(CPU)
    yield host
    host.close()


@pytest.fixture(scope="module")
def plain(host) -> dict:
    """The whole profile by one call."""
    return host.nursery_for(CPU).fork("tests.workers.errands:plain_stump", [SERIES.tolist(), 50]).follow(print)


@pytest.fixture
def agent(host, monkeypatch) -> Agent:
    """An agent that reports nowhere: only what it knows is asked for."""
    agent = Agent.__new__(Agent)
    Agent.__init__(agent, None, type("Introduction", (), {"id": "wk_here"}), lambda check: [])
    agents._introduced.set()
    monkeypatch.setattr(agents, "_current", agent)
    monkeypatch.setattr(hosts, "_current", host)
    return agent


def spread(host, agent, cluster, errand, *arguments):
    """Run a child whose door leads to `cluster`. Returns its value and what it reported."""
    ours, theirs = Door.pair()
    spreading = Spreading(ours, lambda: cluster, agent, "att_1", "claim")
    spreading.start()
    heard = []
    try:
        child = host.nursery_for(CPU).fork(
            f"tests.workers.errands:{errand}", list(arguments), born_with=[theirs.channel.fileno()]
        )
        theirs.close()
        return child.follow(heard.append), heard
    finally:
        spreading.close()


def test_a_spread_profile_is_the_profile(host, agent, plain):
    cluster = Here()
    found, heard = spread(host, agent, cluster, "spread_stumped", SERIES.tolist(), 50, 7)
    np.testing.assert_allclose(found["distances"], plain["distances"], atol=1e-8)
    assert found["indices"] == plain["indices"]
    assert sorted(number for number, _ in cluster.tries) == list(range(7))
    assert {address for _, address in cluster.tries} == {"a", "b"}
    assert sum(found["computed"].values()) == 7
    progress = [message["data"] for message in heard if message["type"] == "progress"]
    assert [(each["done"], each["total"]) for each in progress] == [(n, 7) for n in range(1, 8)]
    assert cluster.closed


def test_one_job_after_the_other_through_the_same_door(host, agent):
    """MPdist asks for two joins, a consensus for one per series: each is a batch of its own."""
    both = [SERIES.tolist(), SERIES[::-1].tolist()]
    found, _ = spread(host, agent, Here(), "spread_mpdisted", *both, 50, 5)
    whole = host.nursery_for(CPU).fork("tests.workers.errands:plain_mpdist", [*both, 50]).follow(print)
    assert found == pytest.approx(whole, abs=1e-9)


def test_lost_and_busy_workers_cost_a_try_each_and_nothing_else(host, agent, plain):
    def gone():
        raise WorkerGone("the wire was cut")

    cluster = Here({0: gone, 3: gone, 4: lambda: Answer("busy")})
    found, _ = spread(host, agent, cluster, "spread_stumped", SERIES.tolist(), 50, 6)
    np.testing.assert_allclose(found["distances"], plain["distances"], atol=1e-8)
    assert len(cluster.tries) == 6 + 3


def test_a_piece_that_ends_one_worker_after_the_other_fails_the_job(host, agent):
    class Deadly(Here):
        def submit(self, address, errand, shared, own):
            if errand.number == 2:
                self.troubles[2] = self.gone
            return super().submit(address, errand, shared, own)

        def gone(self):
            raise WorkerGone("it died")

    with pytest.raises(PieceFailed) as failure:
        spread(host, agent, Deadly(), "spread_stumped", SERIES.tolist(), 50, 6)
    assert failure.value.problem["type"] == "/problems/worker-lost"


def test_what_a_piece_says_of_itself_is_the_jobs_failure(host, agent):
    with pytest.raises(PieceFailed) as failure:
        spread(host, agent, Here(), "spread_out_of_memory")
    assert failure.value.problem["type"] == "/problems/out-of-memory"


def test_a_worker_the_server_does_not_count_gets_no_pieces(host, agent):
    agent.peers = {"b": 1, "c": 1}
    cluster = Here()
    spread(host, agent, cluster, "spread_stumped", SERIES.tolist(), 50, 6)
    assert {address for _, address in cluster.tries} == {"b"}


def test_a_stopped_attempts_piece_ends_and_a_late_one_does_not_begin(host, agent):
    from workers.contract import ReportAnswer
    from workers.spread.base import Errand

    answers, own = [], Parcel.of({0: 600.0})

    def compute():
        answers.append(piece.compute(Errand("att_9", "c", 0, "time:sleep"), Parcel.of({}), own).end)

    thread = threading.Thread(target=compute)
    thread.start()
    eventually(lambda: any(ticket._stop for ticket in agent._tickets))
    agent._carry_out(ReportAnswer(acknowledged=[], stop=["att_9"]), [])
    thread.join(10)
    compute()
    assert answers == ["stopped", "stopped"]


def test_while_a_whole_job_has_the_threads_a_piece_is_told_so(host, agent):
    from workers.spread.base import Errand

    with host.slot.whole(unless=threading.Event()):
        assert piece.compute(Errand("att_2", "c", 0, "time:sleep"), Parcel.of({}), Parcel.of({0: 0})).end == "busy"


def test_nothing_is_left_open_after_a_job(host, agent):
    import os

    spread(host, agent, Here(), "spread_stumped", SERIES.tolist(), 50, 4)
    before = len(os.listdir("/proc/self/fd"))
    spread(host, agent, Here(), "spread_stumped", SERIES.tolist(), 50, 4)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_a_worker_whose_nursery_died_takes_pieces_again_without_being_asked_for_more(host, agent):
    """Nobody runs a whole job there meanwhile, which would have started a new one."""
    from workers.spread.base import Errand

    host.nursery_for(CPU).process.kill()
    eventually(lambda: not host.is_warm(), 5)

    def ends() -> bool:
        return piece.compute(Errand("att_5", "c", 0, "time:sleep"), Parcel.of({}), Parcel.of({0: 0})).end == "done"

    eventually(ends, 60)
