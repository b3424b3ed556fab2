"""Ranks that fail: each says what happened to it, in the words of whoever has to put it right."""

from tests.training.ranks import Ranks, config, shared_ranks  # noqa: F401
from workers.training.checkpoints import fault_of


def test_a_raise_on_one_rank_carries_its_own_traceback(ranks: Ranks) -> None:
    run = ranks.run(config("Raises", init={"at": 2, "rank": 1}), 2)
    cause = run.problem(1)
    assert cause["type"] == "/problems/training-failed"
    assert (cause["status"], cause["rank"]) == (500, 1)
    assert "Rank 1 raised ValueError: the toy broke on purpose" in cause["detail"]
    assert 'raise ValueError("the toy broke on purpose")' in cause["traceback"]
    assert "workers/training/rank.py" not in cause["traceback"]
    assert "echo" not in cause
    assert "the toy broke on purpose" in run.log(1)
    echo = run.problem(0)
    assert echo["echo"] is True
    assert "the toy" not in echo["detail"]
    assert not (run.folder / "result.json").exists()


def test_a_loss_that_is_not_finite_ends_all_ranks_at_that_step(ranks: Ranks) -> None:
    run = ranks.run(config("NotANumber", init={"at": 7}), 2)
    for rank in (0, 1):
        problem = run.problem(rank)
        assert problem["type"] == "/problems/training-failed"
        assert problem["value"] == "NaN"
        assert (problem["step"], problem["rank"]) == (7, rank)
        assert "became NaN at step 7 (epoch 1)" in problem["detail"]
    warning = run.events("warning")[0]
    assert (warning["step"], warning["value"], warning["rank"]) == (7, "NaN", 0)
    assert fault_of(run.folder / "last.ckpt") is None


def test_one_ranks_bad_loss_spoils_no_checkpoint(ranks: Ranks) -> None:
    run = ranks.run(config("NotANumber", init={"at": 6, "rank": 1}), 2, params={"checkpoint_seconds": 1e-6})
    assert run.problem(1)["step"] == 6
    assert run.problem(0)["echo"] is True
    resumed = ranks.run(config(), 2, checkpoint=str(run.folder / "last.ckpt"), resumes=True)
    assert resumed.value["end"] == "finished"
    assert all(value < 10 for _, value in resumed.column("train_loss"))


def test_going_on_after_a_bad_loss_names_no_bad_checkpoint_best(ranks: Ranks) -> None:
    run = ranks.run(config("NotANumber", init={"at": 12}, max_epochs=3), params={"on_nonfinite_loss": "continue"})
    assert run.value["summary"]["steps"] == 30
    assert run.value["summary"]["best"] == "epoch=0-step=10.ckpt"
    assert run.value["summary"]["metrics"]["train_loss"] is None
    assert dict(run.metric("train_loss"))[12] is None
    assert 1 < len(run.events("warning")) <= 10


def test_a_configuration_that_lightning_refuses_is_the_users_to_change(ranks: Ranks) -> None:
    run = ranks.run(config(limit_train_batches=5, val_check_interval=99))
    assert run.problem()["status"] in (422, 500)
    assert "val_check_interval" in run.problem()["detail"]
    worse = ranks.run(config(gradient_clip_algorithm="nonsense"))
    assert worse.problem()["type"] == "/problems/invalid-input"
    assert "nonsense" in worse.problem()["detail"]


def test_no_memory_is_told_with_advice(ranks: Ranks) -> None:
    run = ranks.run(config("OutOfMemory", init={"at": 1}))
    assert run.problem()["type"] == "/problems/out-of-memory"
    assert "smaller batch" in run.problem()["detail"]


def test_uneven_batches_are_told_as_that(ranks: Ranks) -> None:
    run = ranks.run(config(rows={"uneven": True}, use_distributed_sampler=False), 2)
    for rank in (0, 1):
        assert "rank 0 has 10 in an epoch, rank 1 has 12 in an epoch" in run.problem(rank)["detail"]


def test_uneven_streams_are_told_as_that(ranks: Ranks) -> None:
    run = ranks.run(config(data="Streaming", max_epochs=1), 2)
    for rank in (0, 1):
        assert "in epoch 0 rank 0 had 6, and rank 1 has 7 or more" in run.problem(rank)["detail"]


def test_a_world_that_is_not_the_plans_does_not_run(ranks: Ranks) -> None:
    from tests.training.ranks import TOYS

    other = config()
    other["trainer"]["strategy"] = {"class_path": "lightning.pytorch.strategies.SingleDeviceStrategy"}
    run = ranks.run(other, 2)
    assert "makes a world of 1 processes, and the job is planned with 2" in run.problem()["detail"]
    assert TOYS
