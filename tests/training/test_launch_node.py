"""The supervisor of one node, with stand-ins for ranks: whatever they do, all of them end, and it is known why."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.house import eventually
from tests.processes import all_gone, below
from workers.nursery_client import Nursery, Piece
from workers.training import failures
from workers.training.node import NodeSupervisor
from workers.training.node_messages import ASKED, NodeEnd, NodeWork, Patience, RankWork

ERRANDS = "tests.training.errands"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery([f"{ERRANDS}:warm_nothing"], {})
    nursery.wait_ready(20)
    yield nursery
    nursery.close()


class Node:
    """Two ranks of one errand under a supervisor."""

    def __init__(self, nursery: Nursery, folder: Path, errand: str, start=60.0, stall=60.0, **told) -> None:
        self.heard: list[dict] = []
        self.folder = folder
        ranks = [
            RankWork(
                rank=rank,
                log=str(folder / f"rank-{rank}.log"),
                spec={"rank": rank, "folder": str(folder), "stop_file": str(folder / "stop"), **told},
            )
            for rank in (0, 1)
        ]
        work = NodeWork(
            attempt="att_1",
            claim="claim",
            node=0,
            ranks=ranks,
            call=f"{ERRANDS}:{errand}",
            start_seconds=start,
            stall_seconds=stall,
        )
        self.supervisor = NodeSupervisor(nursery, work, self.heard.append)
        self.before = set(below(nursery.process.pid))
        self.nursery = nursery

    def run(self) -> NodeEnd:
        end = self.supervisor.run()
        assert set(below(self.nursery.process.pid)) <= self.before
        return end

    def problem(self) -> dict:
        end = self.run()
        return failures.problem_of(end.ranks, end.problem, "ddp")

    def log(self, rank: int) -> str:
        return (self.folder / f"rank-{rank}.log").read_text()


@pytest.fixture
def node(nursery, tmp_path):
    return lambda errand, **told: Node(nursery, tmp_path, errand, **told)


def test_ranks_that_end_in_good_order(node):
    end = node("finish").run()
    assert [rank.value["end"] for rank in end.ranks] == ["finished", "finished"]
    assert [rank.code for rank in end.ranks] == [0, 0]
    assert all(rank.stepped for rank in end.ranks)
    assert end.problem is None
    assert end.lost is None


def test_the_rank_that_raised_first_is_the_cause_however_loud_the_others_are(node):
    started = time.monotonic()
    problem = node("raise_on_one").problem()
    assert problem["detail"] == "ValueError: the loss is a banana"
    assert problem["rank"] == 1
    assert problem["traceback"] == "train.py, line 3"
    assert time.monotonic() - started < 10


def test_a_rank_that_is_killed_ends_the_others_within_ten_seconds(node):
    started = time.monotonic()
    problem = node("die_on_one").problem()
    assert problem["type"] == "/problems/rank-killed"
    assert problem["rank"] == 1
    assert "SIGKILL" in problem["detail"]
    assert time.monotonic() - started < 10


def test_a_crash_is_told_with_its_signal(node):
    assert "SIGSEGV: a crash in compiled code" in node("die_on_one", signal=int(signal.SIGSEGV)).problem()["detail"]


def test_an_end_without_a_word_is_told_as_that(node):
    problem = node("leave_without_a_word").problem()
    assert problem["type"] == "/problems/training-failed"
    assert "code 7" in problem["detail"]


def test_memory_that_ran_out_is_told_apart_from_a_kill(node, monkeypatch):
    counts = iter([3, 4])
    monkeypatch.setattr("workers.training.node.killed_for_memory", lambda: next(counts))
    problem = node("die_on_one").problem()
    assert problem["type"] == "/problems/out-of-memory"
    assert "fsdp" in problem["detail"]


def test_a_hang_at_the_start_is_found_and_shows_where(node):
    one = node("hang", start=1.0)
    problem = one.problem()
    assert problem["type"] == "/problems/training-hung"
    assert "start_seconds of 1" in problem["detail"]
    assert "wait_for_godot" in one.log(0)
    assert "wait_for_godot" in one.log(1)


def test_a_stall_is_found_and_names_the_rank(node):
    one = node("stall", stall=1.0)
    problem = one.problem()
    assert problem["type"] == "/problems/training-stalled"
    assert problem["rank"] == 1
    assert "rank 1 stood at step 2" in problem["detail"]
    assert "Rank 1 is behind all others" in problem["detail"]
    assert "wait_for_godot" in one.log(1)


@pytest.mark.parametrize("steps", [(7, 6), (6, 6)])
def test_of_ranks_that_wait_for_each_other_the_facts_are_told(node, steps):
    one = node("wait_for_the_other", stall=0.8, steps=steps)
    problem = one.problem()
    assert problem["type"] == "/problems/training-stalled"
    assert f"Rank 0 stood at step {steps[0]}, rank 1 stood at step {steps[1]}." in problem["detail"]
    assert "rank-0.log, rank-1.log" in problem["detail"]
    assert ("behind" in problem["detail"]) == (steps == (7, 6))
    assert problem.get("rank") == (1 if steps == (7, 6) else None)
    assert "wait_for_godot" in one.log(0)
    assert "wait_for_godot" in one.log(1)


def test_what_killed_ranks_leave_in_their_temporary_folder_goes_with_them(node):
    one = node("leave_temporary_files")
    one.run()
    (folder,) = {each["message"]["data"]["message"] for each in one.heard if each["type"] == "said"}
    assert len(folder) < 60
    assert not Path(folder).exists()


def test_a_rank_that_writes_what_is_no_message_is_heard_on(node):
    one = node("scribble")
    end = one.run()
    assert [rank.code for rank in end.ranks] == [0, 0]
    assert all(rank.clean and rank.stepped for rank in end.ranks)


def test_a_rank_that_cannot_be_heard_has_failed_and_the_others_end(node, monkeypatch):
    def deaf(self, listener):
        raise KeyError("banana")

    hear = Piece.hear
    monkeypatch.setattr(Piece, "hear", lambda self, listener: (deaf if listener.args == (1,) else hear)(self, listener))
    problem = node("train").problem()
    assert problem["type"] == "/problems/training-failed"
    assert problem["rank"] == 1
    assert "KeyError: 'banana'" in problem["detail"]


def test_what_ignores_term_is_killed_with_its_helpers_wherever_they_hide(node):
    one = node("ignore_term")
    ends: list[NodeEnd] = []
    thread = threading.Thread(target=lambda: ends.append(one.run()))
    thread.start()
    eventually(lambda: len([each for each in one.heard if each["type"] == "said"]) == 2)
    pids = [int(each["message"]["data"]["message"]) for each in one.heard if each["type"] == "said"]
    eventually(lambda: all(len(below(pid)) == 2 for pid in pids), 20)
    helpers = [each for pid in pids for each in below(pid)]
    one.supervisor.end(Patience(0.2, 0.5))
    thread.join(10)
    assert [rank.code for rank in ends[0].ranks] == [-9, -9]
    assert all(rank.termed for rank in ends[0].ranks)
    assert all_gone(helpers)


def test_ranks_that_are_asked_end_by_themselves(node):
    one = node("train")
    ends: list[NodeEnd] = []
    thread = threading.Thread(target=lambda: ends.append(one.run()))
    thread.start()
    time.sleep(0.3)
    (one.folder / "stop").touch()
    one.supervisor.end(ASKED)
    thread.join(10)
    assert [rank.value for rank in ends[0].ranks] == [{"end": "stopped"}] * 2
    assert not any(rank.termed for rank in ends[0].ranks)


def test_a_rank_that_ends_takes_its_own_daemons_along_and_nobody_elses(node):
    end = node("leave_a_daemon_while_others_go_on").run()
    assert [rank.clean for rank in end.ranks] == [True, True]
    assert not any(psutil.pid_exists(rank.value["pid"]) for rank in end.ranks)


def test_ranks_whose_nursery_dies_are_lost(tmp_path):
    nursery = Nursery([f"{ERRANDS}:warm_nothing"], {})
    nursery.wait_ready(20)
    one = Node(nursery, tmp_path, "train")
    threading.Timer(0.5, nursery.process.kill).start()
    end = one.supervisor.run()
    assert end.lost
    assert [rank.code for rank in end.ranks] == [None, None]
    nursery.close()
