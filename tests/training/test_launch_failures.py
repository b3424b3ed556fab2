"""What a failure is called, from how the ranks ended."""

import pytest

from workers.training.failures import causes, problem_of
from workers.training.node_messages import RankEnd

RAISED = {"type": "/problems/training-failed", "title": "Training failed", "status": 500}
ECHO = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:47001"


def raised(rank, detail, at, **about):
    problem = {**RAISED, "detail": detail, "at": at, "traceback": "…", "rank": rank, **about.pop("problem", {})}
    return RankEnd(rank=rank, node=0, at=at + 5, problem=problem, code=1, **about)


def finished(rank):
    return RankEnd(rank=rank, node=0, at=9.0, value={"end": "finished"}, code=0, stepped=True)


def test_the_earliest_cause_is_told_and_not_the_earliest_words():
    ends = [raised(0, ECHO, 1.0), raised(1, "ValueError: late", 3.0), raised(2, "ValueError: early", 2.0)]
    problem = problem_of(ends, None, "ddp")
    assert problem["detail"] == "ValueError: early"
    assert problem["rank"] == 2
    assert [end.rank for end in causes(ends)] == [2, 1]


def test_what_a_rank_itself_calls_an_echo_is_one():
    ends = [raised(0, "RuntimeError: strange", 1.0, problem={"echo": True}), raised(1, "ValueError: early", 2.0)]
    problem = problem_of(ends, None, "ddp")
    assert problem["rank"] == 1
    assert "echo" not in problem


def test_a_rank_that_was_ended_is_no_cause():
    ends = [raised(0, "KeyboardInterrupt", 1.0, termed=True), raised(1, "ValueError: early", 2.0)]
    assert problem_of(ends, None, "ddp")["rank"] == 1


def test_words_about_a_lost_connection_are_told_where_there_is_nothing_else():
    assert problem_of([raised(0, ECHO, 1.0, stepped=True)], None, "ddp")["detail"] == ECHO


def test_a_rank_that_waited_for_one_which_had_finished_had_more_batches():
    problem = problem_of([finished(0), raised(1, ECHO, 1.0, stepped=True)], None, "ddp")
    assert "different numbers of batches" in problem["detail"]


def test_what_a_supervisor_found_is_told_unless_a_rank_had_failed_before():
    found = {"type": "/problems/training-stalled", "title": "…", "status": 500, "detail": "…", "at": 10.0, "rank": 0}
    assert problem_of([raised(1, "ValueError: because it was ended", 11.0)], found, "ddp") == found
    assert problem_of([raised(1, "ValueError: before", 3.0)], found, "ddp")["detail"] == "ValueError: before"


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ("torch.distributed.DistNetworkError: The client socket has timed out after 60000ms", "rendezvous-failed"),
        ("RuntimeError: Gloo connectFullMesh failed with no error", "rendezvous-failed"),
        ("ValueError: Unable to find address for: eth7", "rendezvous-failed"),
        ("MisconfigurationException: You requested gpu: [0, 1]\n But your machine only has: [0]", "device-mismatch"),
        ("RuntimeError: CUDA error: invalid device ordinal", "device-mismatch"),
        ("ModuleNotFoundError: No module named 'deepspeed'", "missing-package"),
        ("RuntimeError: The server socket has failed to listen: EADDRINUSE", "port-taken"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB", "out-of-memory"),
    ],
)
@pytest.mark.parametrize("told", ["training-failed", "invalid-input"])
def test_failures_of_a_launch_have_names(words, slug, told):
    problem = problem_of([raised(0, words, 1.0, problem={"type": f"/problems/{told}"})], None, "ddp")
    assert problem["type"] == f"/problems/{slug}"
    assert problem["detail"].startswith(words[:40])
    assert len(problem["detail"]) > len(words)
    assert problem["traceback"] == "…"


def test_once_a_rank_has_made_steps_its_words_are_its_own():
    words = "ModuleNotFoundError: No module named 'banana'"
    assert problem_of([raised(0, words, 1.0, stepped=True)], None, "ddp")["type"] == "/problems/training-failed"


def test_memory_that_runs_out_under_ddp_suggests_to_shard():
    killed = RankEnd(rank=1, node=0, at=1.0, code=-9, out_of_memory=True)
    assert "`fsdp` shards" in problem_of([killed], None, "ddp")["detail"]
    assert "fsdp" not in problem_of([killed], None, "single_device")["detail"]
