"""Ranks that fail: each says what happened to it, in the words of whoever has to put it right."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

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
    of_metrics = [event["metric"] for event in run.events("warning") if "metric" in event]
    assert sorted(of_metrics) == ["train_loss", "val_loss"]
    assert 1 < len(run.events("warning")) - len(of_metrics) <= 10


@pytest.mark.parametrize("monitor", ["", "val_loss"])
@pytest.mark.parametrize(("at", "best"), [(-1, None), (10, "epoch=0-step=10.ckpt")])
def test_no_checkpoint_without_a_finite_score_is_best(ranks: Ranks, monitor: str, at: int, best: str | None) -> None:
    keep = {"class_path": "lightning.pytorch.callbacks.ModelCheckpoint", "init_args": {"monitor": monitor}}
    more = {"callbacks": [keep]} if monitor else {}
    run = ranks.run(config("LosesItsValidation", init={"at": at}, num_sanity_val_steps=0, **more))
    assert (run.value["summary"]["best"] or "").rpartition("/")[2] == (best or "")
    assert "last.ckpt" in run.value["summary"]["checkpoints"]
    (warning,) = run.events("warning")
    assert (warning["metric"], warning["step"], warning["value"]) == ("val_loss", 9 if at < 0 else 19, "NaN")
    assert f"the metric val_loss is NaN at step {warning['step']}" in warning["message"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("long", "Rank 0 raised RuntimeError: xxx"),
        ("nameless", "Rank 0 raised Nameless: (what it says is not known: its __str__ raised ValueError)"),
        ("surrogate", "Rank 0 raised RuntimeError: bad \\ud800 surrogate"),
        ("own", "Rank 0 raised RuntimeError: my own words"),
        ("value", "Rank 0 raised ValueError: my own words"),
        ("interrupt", "Rank 0 raised KeyboardInterrupt"),
    ],
)
@pytest.mark.parametrize("building", [False, True])
def test_whatever_users_code_raises_is_told_as_theirs(ranks: Ranks, what: str, words: str, building: bool) -> None:
    problem = ranks.run(config("RaisesOddly", init={"what": what, "building": building})).problem()
    assert problem["type"] == "/problems/training-failed"
    assert problem["detail"].startswith(words)
    assert len(problem["detail"]) < 2_200
    assert ("cut here" in problem["detail"]) == (what == "long")
    assert "raise FAULTS[" in problem["traceback"]
    assert len(problem["traceback"]) < 20_000


def test_what_built_in_data_refuses_is_the_users_to_change(ranks: Ranks, tmp_path: Path) -> None:
    series = tmp_path / "values.npy"
    np.save(series, np.arange(30.0))
    asked = {
        "trainer": {"max_epochs": 1, "enable_model_summary": False},
        "model": {"class_path": "workers.training.models.Forecaster"},
        "data": {"class_path": "workers.training.data.SeriesWindows"},
    }
    asked["data"]["init_args"] = {"series": str(series), "context": 200, "horizon": 4}
    problem = ranks.run(asked).problem()
    assert (problem["type"], problem["status"]) == ("/problems/invalid-input", 422)
    assert "traceback" not in problem
    assert str(tmp_path) not in problem["detail"]
    np.save(series, np.zeros((3, 3)))
    problem = ranks.run(asked).problem()
    assert problem["type"] == "/problems/invalid-input"
    assert "`series` is 'values.npy', which holds float64 of shape (3, 3)" in problem["detail"]
    assert "traceback" not in problem


@pytest.mark.parametrize("content", ["empty", "text", "pickle", "tensor", "weights", "cut"])
def test_a_file_that_is_no_checkpoint_is_told_as_that(ranks: Ranks, tmp_path: Path, content: str) -> None:
    path = tmp_path / "model.ckpt"
    match content:
        case "pickle":
            path.write_bytes(pickle.dumps({"a": 1}, protocol=2))
        case "tensor":
            torch.save(torch.ones(3), path)
        case "weights":
            torch.save({"a.weight": torch.ones(3)}, path)
        case "cut":
            torch.save(torch.ones(1000), path)
            path.write_bytes(path.read_bytes()[:-300])
        case _:
            path.write_text("" if content == "empty" else "a,b\n1,2\n")
    problem = ranks.run(config(), checkpoint=str(path)).problem()
    assert problem["type"] == "/problems/invalid-input"
    assert problem["detail"].startswith("model.ckpt is no checkpoint that Lightning wrote: ")


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


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ({"first": 6, "more": 2}, 0.0),
        # After eight steps all ranks look whether to save.
        ({"first": 8, "more": 1}, 0.02),
        ({"first": 16, "more": 2, "validates": True}, 0.0),
        ({"first": 8, "more": -1}, 0.02),
        ({"first": 8, "more": 2, "says": True}, 0.0),
    ],
)
def test_uneven_streams_are_told_as_that(ranks: Ranks, rows: dict[str, Any], seconds: float) -> None:
    run = ranks.start(config(data="Streaming", rows=rows, init={"seconds": seconds}, max_epochs=1), 2).finished(20)
    least, short = min((rows["first"] + rank * rows["more"], rank) for rank in (0, 1))
    words = f"in epoch 0 rank {short} had {least}, and rank {1 - short} has {least + 1} or more"
    for rank in (0, 1):
        assert words in run.problem(rank)["detail"]


def test_uneven_streams_that_max_steps_makes_even_are_no_fault(ranks: Ranks) -> None:
    rows, init = {"first": 4, "more": 1}, {"seconds": 0.3}  # long enough for each to hear of the other
    run = ranks.run(config(data="Streaming", rows=rows, init=init, max_epochs=-1, max_steps=4), 2)
    assert run.value["summary"]["steps"] == 4


@pytest.mark.parametrize("says", [False, True])
def test_even_streams_are_not_told_as_uneven(ranks: Ranks, says: bool) -> None:
    rows = {"first": 8, "more": 0, "validates": True, "says": says}
    run = ranks.run(config(data="Streaming", rows=rows), 2)
    assert run.value["summary"]["steps"] == 16


def test_a_world_that_is_not_the_plans_does_not_run(ranks: Ranks) -> None:
    from tests.training.ranks import TOYS

    other = config()
    other["trainer"]["strategy"] = {"class_path": "lightning.pytorch.strategies.SingleDeviceStrategy"}
    run = ranks.run(other, 2)
    assert "makes a world of 1 processes, and the job is planned with 2" in run.problem()["detail"]
    assert TOYS
