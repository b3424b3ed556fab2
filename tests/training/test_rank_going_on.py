"""Stopping and going on: all ranks stop at the same step, and a loss curve has no gap and no repeated step across attempts."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.training.ranks import Ranks, Run, config, shared_ranks  # noqa: F401
from workers.training.checkpoints import newest_whole, step_of

SLOW = {"seconds": 0.02}


def seen_by_the_server(*runs: Run) -> dict[str, int]:
    """What the driver of the next attempt is told."""
    seen: dict[str, int] = {}
    for run in runs:
        for event in run.events("metric"):
            seen[event["name"]] = max(seen.get(event["name"], -1), event["step"])
    return seen


def going_on_from(*runs: Run) -> dict[str, Any]:
    path, _ = newest_whole([run.folder for run in reversed(runs)])
    assert path is not None
    return {
        "checkpoint": str(path),
        "resumes": True,
        "metrics_before": str(path.parent / "metrics.csv"),
        "metrics_seen": seen_by_the_server(*runs),
    }


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("world", [1, 2])
def test_a_stop_is_obeyed_at_the_same_step_and_the_job_goes_on_from_there(ranks: Ranks, world: int) -> None:
    started = ranks.start(config(init=SLOW, rows={"count": 400}), world)
    until(lambda: len(started.run.metric("train_loss")) > 12)
    started.stop_file.touch()
    run = started.finished()
    assert [end.answer for end in run.ends] == [{"type": "returned", "value": {"end": "stopped"}}] * world
    stopped_at = step_of(run.folder / "last.ckpt")
    assert stopped_at
    assert run.column("train_loss")[-1][0] == run.metric("train_loss")[-1][0] == stopped_at - 1
    assert not (run.folder / "result.json").exists()
    total = 200 // world
    after = ranks.run(config(rows={"count": 400}), world, **going_on_from(run))
    assert after.value["summary"]["steps"] == total
    assert [step for step, _ in after.column("train_loss")] == list(range(total))
    assert [step for step, _ in after.metric("train_loss")] == list(range(stopped_at, total))
    assert after.column("train_loss")[:stopped_at] == run.column("train_loss")
    assert [step for step, _ in after.column("val_loss")] == [total // 2 - 1, total - 1]


@pytest.mark.parametrize(("world", "at"), [(1, 27), (2, 16)])
def test_a_kill_in_mid_epoch_leaves_no_gap_and_no_repeated_step(
    ranks: Ranks, tmp_path: Any, world: int, at: int
) -> None:
    marked = config("Dies", init={"at": at, "rank": world - 1, "marker": str(tmp_path / "died")}, max_epochs=4)
    every = {"params": {"checkpoint_seconds": 0.02}}
    run = ranks.run(marked, world, **every)
    assert run.ends[world - 1].code == -9
    after = ranks.run(marked, world, **every, **going_on_from(run))
    total = 40 // world
    assert [step for step, _ in after.column("train_loss")] == list(range(total))
    events = run.metric("train_loss") + after.metric("train_loss")
    assert [step for step, _ in events] == list(range(total))
    per_epoch = 10 // world
    assert [step for step, _ in after.column("val_loss")] == [per_epoch * (n + 1) - 1 for n in range(4)]
    assert [step for step, _ in after.column("mean_x")] == [per_epoch * (n + 1) - 1 for n in range(4)]


@pytest.mark.parametrize(
    ("world", "at", "about"),
    [
        (1, 7, {}),
        (1, 25, {"check_val_every_n_epoch": 2}),
        (1, 13, {"workers": 1}),
        (2, 12, {"workers": 1}),
    ],
)
def test_the_curve_is_that_of_a_training_that_nothing_happened_to(
    ranks: Ranks,
    tmp_path: Any,
    world: int,
    at: int,
    about: dict[str, Any],
) -> None:
    """Shuffled batches and, in a world of one, random numbers in the model are those that would have come."""
    rows = {"shuffle": True, "workers": about.get("workers", 0)}
    trainer = {name: value for name, value in about.items() if name != "workers"}
    marker = tmp_path / "died"

    def asked() -> dict[str, Any]:
        return config(
            "Dies", init={"at": at, "rank": world - 1, "marker": str(marker)}, rows=rows, max_epochs=3, **trainer
        )

    run = ranks.run(asked(), world, params={"checkpoint_seconds": 0.001})
    assert run.ends[world - 1].code == -9
    after = ranks.run(asked(), world, **going_on_from(run))
    begun = after.metric("train_loss")[0][0]
    assert 0 < begun <= at
    whole = ranks.run(asked(), world)
    for name in ("train_loss", "val_loss"):
        assert dict(after.column(name)) == pytest.approx(dict(whole.column(name)))


def test_a_truncated_last_checkpoint_is_passed_over(ranks: Ranks) -> None:
    run = ranks.run(config())
    last = run.folder / "last.ckpt"
    last.write_bytes(last.read_bytes()[:-200])
    path, skipped = newest_whole([run.folder])
    assert path == run.folder / run.value["summary"]["best"]
    assert [(each, why) for each, why in skipped] == [(last, "it is not whole (File is not a zip file)")]
    after = ranks.run(config(max_epochs=3), **going_on_from(run))
    assert after.value["summary"]["steps"] == 30
    assert [step for step, _ in after.column("train_loss")] == list(range(30))


def test_the_best_checkpoint_of_an_earlier_attempt_stays_the_best(ranks: Ranks) -> None:
    run = ranks.run(config())
    best = run.value["summary"]["best"]
    least = min(value for _, value in run.column("val_loss"))
    after = ranks.run(config(init={"lr": 0.9}, max_epochs=3), **going_on_from(run))
    values = dict(after.column("val_loss"))
    expected = best if values[29] > least else "epoch=2-step=30.ckpt"
    assert after.value["summary"]["best"] == expected
    assert (after.folder / expected).exists()


def test_another_jobs_checkpoint_is_where_a_fit_begins(ranks: Ranks) -> None:
    run = ranks.run(config())
    after = ranks.run(config(max_epochs=3), checkpoint=str(run.folder / "last.ckpt"))
    assert [step for step, _ in after.column("train_loss")] == list(range(20, 30))
    assert after.value["summary"]["best"] == "epoch=2-step=30.ckpt"
    assert after.value["provenance"]["checkpoint"] == "last.ckpt"


def test_a_model_with_objects_in_its_checkpoints_goes_on_from_its_own_alone(ranks: Ranks, tmp_path: Any) -> None:
    asked = config("HoldsObjects", init={"at": 13, "marker": str(tmp_path / "died")})
    run = ranks.run(asked)
    after = ranks.run(asked, **going_on_from(run))
    assert after.value["summary"]["steps"] == 20
    assert after.value["summary"]["best"]
    others = ranks.run(asked, checkpoint=str(after.folder / "last.ckpt"))
    assert others.problem()["type"] == "/problems/invalid-input"
    assert "holds Python objects" in others.problem()["detail"]


def test_checkpoints_of_gradients_that_add_up_lose_none(ranks: Ranks, tmp_path: Any) -> None:
    marked = config("Dies", init={"at": 7, "marker": str(tmp_path / "died")}, accumulate_grad_batches=2, max_epochs=3)
    run = ranks.run(marked, params={"checkpoint_seconds": 0.001})
    whole = ranks.run(config(accumulate_grad_batches=2, max_epochs=3))
    after = ranks.run(marked, **going_on_from(run))
    assert [step for step, _ in after.column("train_loss")] == list(range(15))
    assert after.value["summary"]["steps"] == whole.value["summary"]["steps"] == 15


def test_a_stop_in_a_long_validation_is_obeyed(ranks: Ranks) -> None:
    rows, init = {"count": 4000}, {"validation_seconds": 0.05}
    started = ranks.start(config(rows=rows, init=init, limit_train_batches=3, num_sanity_val_steps=0), 2)
    until(lambda: any(beat["stage"] == "validate" for beat in started.run.events("beat", 1)))
    started.stop_file.touch()
    assert [end.answer["value"] for end in started.finished(20).ends] == [{"end": "stopped"}] * 2
