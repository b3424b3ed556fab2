"""Training on workers that have no folder in common: data and code are fetched, checkpoints, logs and metrics are put back."""

import csv
import hashlib
import io
from collections.abc import Iterator

import pytest

from tests.house import eventually
from tests.storage.conftest import Far, workers_of
from tests.training.yard import Trainers
from workers.contract import TrainingParams
from workers.training.failures_named import NeedsSharedStorage
from workers.training.node_files import refuse_scattered
from workers.training.rules import Resolved

STEPS = 8
TWO_NODES = {"num_nodes": 2, "strategy": "ddp"}


@pytest.fixture(scope="module")
def client(made: Far) -> Iterator[Trainers]:
    trainers = Trainers(made.house, "dask")
    yield trainers
    trainers.api.close()


@pytest.fixture
def trainers(far: Far, client: Trainers) -> Trainers:
    return client


def fitted_steps(trainers: Trainers, job: str) -> list[int]:
    rows = csv.DictReader(io.StringIO(trainers.artifact(job, "metrics.csv").decode()))
    return [int(row["step"]) for row in rows if row.get("train_loss")]


def test_two_nodes_without_a_folder_in_common(trainers: Trainers) -> None:
    job = trainers.run(trainers.body(trainer=TWO_NODES))
    assert job["result"]["world_size"] == 2
    running = [
        e["data"] for e in trainers.api.events(job["id"]) if e["type"] == "state" and e["data"]["to"] == "running"
    ]
    assert len(set(running[0]["workers"])) == 2
    names = set(trainers.artifacts(job["id"]))
    # What rank 1 printed comes from the other node, and so does its part of the log of all.
    assert {"last.ckpt", "metrics.csv", "result.json", "rank-0.log", "rank-1.log", job["result"]["best"]} <= names
    log = trainers.api.get(f"/jobs/{job['id']}/logs").text
    assert "[rank 0]" in log
    assert "[rank 1]" in log
    for each in trainers.api.get(f"/jobs/{job['id']}/artifacts?limit=200").json()["items"]:
        content = trainers.artifact(job["id"], each["name"])
        assert (each["name"], len(content), hashlib.sha256(content).hexdigest()) == (
            each["name"],
            each["bytes"],
            each["sha256"],
        )


def test_series_and_tables_are_files_on_every_node(trainers: Trainers) -> None:
    text = "a,b,label\n" + "\n".join(f"{i % 7},{i % 5},{'xy'[i % 2]}" for i in range(400))
    dataset = trainers.api.post("/datasets", files={"file": ("table.csv", text)}).json()["id"]
    stretch = {"dataset": dataset, "column": "a", "start": 20}
    body = trainers.fabric(
        {"num_nodes": 2, "strategy": "ddp"},
        series=stretch,
        whole={"dataset": dataset, "column": "b"},
        table={"dataset": dataset},
        inline={"values": [1.0, 2.0, None]},
    )
    body["params"]["config"]["function"]["call_path"] = "toys.look"
    job = trainers.run(body)
    assert job["result"]["metrics"] == {"ranks": 2, "series": 380, "whole": 400, "rows": 400, "values": 3}


def test_predictions_of_two_nodes_are_one_table(trainers: Trainers) -> None:
    fitted = trainers.run(trainers.body(trainer={**TWO_NODES, "max_epochs": 1}))
    ckpt = {"ckpt_path": {"job": fitted["id"], "artifact": "last.ckpt"}}
    job = trainers.run(trainers.body(config=ckpt, params={"stage": "predict"}, trainer=TWO_NODES))
    table = trainers.api.get(job["links"]["result"], headers={"Accept": "text/csv"}).text
    assert len(list(csv.DictReader(io.StringIO(table)))) == 64


@pytest.mark.parametrize(("storage", "node"), [("none", 1), ("none", 0), ("", 1)])
def test_a_killed_node_costs_the_steps_since_the_last_checkpoint(
    far: Far, trainers: Trainers, storage: str, node: int
) -> None:
    far.use(storage)
    body = trainers.body(
        init={"seconds": 0.1},
        trainer={**TWO_NODES, "max_epochs": 10},
        params={"checkpoint_seconds": 1.0},
        max_attempts=3,
    )
    job = trainers.start(body)
    eventually(lambda: len(trainers.metric(job, "train_loss")) >= 15, 90)
    kept = far.house.home / "jobs" / job / "1" / "last.ckpt"
    eventually(kept.is_file, 60)  # with the server: what was not put back yet would be lost
    far.owner_of(job, node).kill()
    eventually(lambda: trainers.api.job(job)["phase"] == "waiting_for_worker", 30)
    far.up()
    ended = trainers.api.until(job, "succeeded", seconds=120)
    assert ended["attempt"] == 2
    assert "Goes on from 1/last.ckpt" in trainers.api.get(f"/jobs/{job}/logs").text
    steps = fitted_steps(trainers, job)
    assert steps == list(range(steps[0], steps[0] + 10 * STEPS // 2))
    assert ended["result"]["best"] in trainers.artifacts(job)
    assert ("over HTTP" in str(trainers.api.events(job))) == (storage == "none")


def test_of_two_nodes_one_has_the_servers_folder(far: Far, trainers: Trainers) -> None:
    far.use("none", but_one="")
    with far.house.api() as api:
        assert {worker["storage"] for worker in workers_of(api)} == {"http", "shared"}
    job = trainers.run(trainers.body(trainer=TWO_NODES))
    assert {"last.ckpt", "metrics.csv", "rank-0.log", "rank-1.log"} <= set(trainers.artifacts(job["id"]))
    log = trainers.api.get(f"/jobs/{job['id']}/logs").text
    assert "[rank 0]" in log
    assert "[rank 1]" in log


def test_a_cancel_brings_the_last_checkpoint_home_and_a_retry_goes_on(trainers: Trainers) -> None:
    data = {"class_path": "toys.Line", "init_args": {"rows": 512}}
    job = trainers.start(trainers.body(init={"seconds": 0.1}, data=data, trainer={**TWO_NODES, "max_epochs": 1}))
    eventually(lambda: len(trainers.metric(job, "train_loss")) >= 3, 60)
    assert trainers.api.post(f"/jobs/{job}/cancel").status_code == 202
    trainers.api.until(job, "cancelled", seconds=10)
    assert "last.ckpt" in trainers.artifacts(job)
    again = trainers.api.post(f"/jobs/{job}/retry").json()["id"]
    trainers.api.until(again, "succeeded", seconds=60)
    steps = fitted_steps(trainers, again)
    assert steps == list(range(steps[0], steps[0] + 32))


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        ("deepspeed_stage_2", "deepspeed_stage_2"),
        ({"class_path": "ModelParallelStrategy"}, "ModelParallelStrategy"),
        ({"class_path": "FSDPStrategy", "init_args": {"state_dict_type": "sharded"}}, "FSDPStrategy"),
    ],
)
def test_a_strategy_that_scatters_its_checkpoints_is_refused_in_words(strategy: object, name: str) -> None:
    params = TrainingParams(config={"trainer": {"strategy": strategy}})
    with pytest.raises(NeedsSharedStorage, match="choose a strategy that saves from rank 0"):
        refuse_scattered(params, resolved(name))


@pytest.mark.parametrize("strategy", ["ddp", {"class_path": "FSDPStrategy", "init_args": {"state_dict_type": "full"}}])
def test_a_strategy_that_saves_from_rank_0_is_not(strategy: object) -> None:
    refuse_scattered(TrainingParams(config={"trainer": {"strategy": strategy}}), resolved("ddp"))


def resolved(strategy: str) -> Resolved:
    return Resolved(accelerator="cuda", devices=1, num_nodes=2, strategy=strategy, precision="32-true", world_size=2)
