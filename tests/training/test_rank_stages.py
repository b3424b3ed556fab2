"""Validate, test and predict with a checkpoint; a function under Fabric; models of the other namespace."""

import json
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.training.ranks import TOYS, Ranks, Run, config, shared_ranks  # noqa: F401
from tests.training.test_rank_going_on import going_on_from, until
from workers.training.predictions import IN_TURN, ordered


def function(**kwargs: object) -> dict[str, object]:
    return {"fabric": {}, "function": {"call_path": f"{TOYS}.loop", "kwargs": kwargs}}


@pytest.fixture(scope="module")
def trained(ranks: Ranks) -> Run:
    return ranks.run(config())


@pytest.mark.parametrize(("stage", "metric"), [("validate", "val_loss"), ("test", "test_loss")])
@pytest.mark.parametrize("world", [1, 2])
def test_a_checkpoint_is_judged(ranks: Ranks, trained: Run, stage: str, metric: str, world: int) -> None:
    run = ranks.run(config(), world, stage=stage, checkpoint=str(trained.folder / "last.ckpt"))
    assert run.value["summary"]["metrics"][metric] == pytest.approx(trained.column("val_loss")[-1][1], rel=1e-5)
    assert run.value["summary"]["checkpoints"] == []
    assert run.column(metric)[0][1] == run.value["summary"]["metrics"][metric]
    assert run.events("progress")[-1]["fraction"] == 1.0


@pytest.mark.parametrize("world", [1, 2])
def test_predictions_are_a_table_in_the_order_of_the_samples(ranks: Ranks, trained: Run, world: int) -> None:
    # Of 39 samples two ranks have 20 and 19, and so different batches.
    asked = config(rows={"count": 39})
    run = ranks.run(asked, world, stage="predict", checkpoint=str(trained.folder / "last.ckpt"))
    assert run.value["summary"]["predictions"] == {"rows": 39, "columns": ["index", "y_0", "x"]}
    table = pq.read_table(run.folder / "predictions.parquet").to_pydict()
    assert table["index"] == list(range(39))
    assert table["x"] == pytest.approx([i / 39 for i in range(39)])
    slope = (table["y_0"][38] - table["y_0"][0]) / (table["x"][38] - table["x"][0])
    assert table["y_0"] == pytest.approx([table["y_0"][0] + slope * x for x in table["x"]], abs=1e-4)
    assert pq.read_table(run.folder / "result.parquet").to_pydict() == table
    assert not [path.name for path in run.folder.iterdir() if path.name.startswith(".pred")]


def test_predictions_that_are_no_table_are_told(ranks: Ranks) -> None:
    run = ranks.run(config("PredictsNothing"), stage="predict")
    assert run.value["summary"]["predictions"]["rows"] == 0
    assert "which is no table" in run.events("warning")[0]["message"]


def test_evaluation_stops_too(ranks: Ranks) -> None:
    started = ranks.start(config(init={"seconds": 0.05}, rows={"count": 4000}), 2, stage="test")
    until(lambda: started.run.events("beat"))
    started.stop_file.touch()
    began = time.monotonic()
    run = started.finished()
    assert [end.answer["value"] for end in run.ends] == [{"end": "stopped"}] * 2
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("world", [1, 2])
def test_a_function_under_fabric(ranks: Ranks, world: int) -> None:
    run = ranks.run(function(save="kept.ckpt"), world, mode="fabric")
    assert run.value["summary"]["metrics"].keys() == {"loss", "final", "world"}
    assert run.value["summary"]["metrics"]["world"] == world
    assert (run.value["summary"]["steps"], run.value["summary"]["world_size"]) == (20, world)
    assert [step for step, _ in run.metric("loss")] == list(range(20))
    assert run.events("artifact")[0]["name"] == "kept.ckpt"
    assert "no numbers, and so no metrics: name" in run.events("warning")[0]["message"]
    assert json.loads((run.folder / "result.json").read_text())["checkpoints"] == ["kept.ckpt"]


def test_a_functions_odd_numbers_are_told(ranks: Ranks) -> None:
    asked = {"fabric": {}, "function": {"call_path": f"{TOYS}.returns", "kwargs": {}}}
    run = ranks.run(asked, mode="fabric")
    assert run.value["summary"]["metrics"] == {"fine": 1.0, "nan": None}
    first, second = (event["message"] for event in run.events("warning"))
    assert first == "no numbers, and so no metrics: huge"
    assert "nan is nan" in second


def test_a_function_goes_on_from_what_it_saved(ranks: Ranks) -> None:
    run = ranks.run(function(save="kept.ckpt", steps=8), 2, mode="fabric")
    after = ranks.run(function(steps=20), 2, mode="fabric", **going_on_from(run))
    assert after.value["summary"]["steps"] == 20
    assert [step for step, _ in after.column("loss")] == list(range(20))
    assert [step for step, _ in after.metric("loss")] == list(range(8, 20))


def test_a_function_stops_at_the_same_step_in_all_ranks(ranks: Ranks) -> None:
    started = ranks.start(function(steps=5000, seconds=0.01), 2, mode="fabric")
    until(lambda: len(started.run.metric("loss")) > 5)
    started.stop_file.touch()
    assert [end.answer["value"] for end in started.finished().ends] == [{"end": "stopped"}] * 2


def test_a_functions_loss_that_is_not_finite_ends_it(ranks: Ranks) -> None:
    run = ranks.run(function(nan_at=4), 2, mode="fabric")
    assert [run.problem(rank)["step"] for rank in (0, 1)] == [4, 4]


def test_a_function_that_raises_on_one_rank(ranks: Ranks) -> None:
    run = ranks.run(function(raises_on=1), 2, mode="fabric")
    assert "Rank 1 raised ValueError: the toy broke on purpose" in run.problem(1)["detail"]
    assert run.problem(0)["echo"] is True


def test_a_model_of_the_other_namespace_gets_its_own_trainer(ranks: Ranks) -> None:
    boring = "pytorch_lightning.demos.boring_classes"
    asked = {
        "trainer": {"max_epochs": 1, "limit_train_batches": 4, "limit_val_batches": 2, "enable_model_summary": False},
        "model": {"class_path": f"{boring}.BoringModel"},
        "data": {"class_path": f"{boring}.BoringDataModule"},
    }
    run = ranks.run(asked)
    assert run.value["summary"]["steps"] == 4
    assert "last.ckpt" in run.value["summary"]["checkpoints"]


def test_predictions_of_several_series_are_kept_apart_and_those_without_an_index_keep_their_turn() -> None:
    series, index = np.array([1, 0, 0, 1]), np.array([5, 5, 4, 5])
    table = ordered({"series": series, "index": index, "y": np.array([1.0, 2.0, 3.0, 1.0])})
    assert [each.tolist() for each in table.values()] == [[0, 0, 1], [4, 5, 5], [3.0, 2.0, 1.0]]
    # The last batch of each of two ranks is smaller than the others.
    turns = np.array([1 * IN_TURN, 1 * IN_TURN + 1, 3 * IN_TURN, 2 * IN_TURN, 2 * IN_TURN + 1])
    table = ordered({"index": turns, "y": np.array([0.0, 1.0, 4.0, 2.0, 3.0])})
    assert (table["index"].tolist(), table["y"].tolist()) == ([0, 1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0, 4.0])
