"""What a training job does on every engine, through HTTP: `test_on_dask.py` and `test_on_ray.py` run it, each on a server of its own."""

import csv
import io
import math
from pathlib import Path

import psutil
import statsmodels

from tests.house import eventually
from tests.processes import below, lives, says
from tests.training.yard import Trainers

STEPS = 8
"""Of an epoch of `toys.Line` in one rank."""


def ranks(trainers: Trainers) -> list[psutil.Process]:
    """Whatever lives below the training nurseries: ranks, and all that they started."""
    nurseries = [each for each in trainers.house.family() if says(each, "workers.training.warm:warm")]
    return [each for nursery in nurseries for each in below(nursery) if lives(each)]


def all_gone(trainers: Trainers) -> None:
    eventually(lambda: not ranks(trainers), 10)


def training(trainers: Trainers, job: str, steps: int = 3) -> None:
    """Wait until it has reported some steps."""
    eventually(lambda: len(trainers.metric(job, "train_loss")) >= steps, 60)


class Cases:
    def test_one_rank_fits(self, trainers: Trainers) -> None:
        job = trainers.run(trainers.body())
        assert job["plan"]["resolved"]["strategy"] == "single_device"
        assert (job["result"]["world_size"], job["result"]["epochs"], job["result"]["steps"]) == (1, 2, 2 * STEPS)
        losses = trainers.metric(job["id"], "train_loss")
        assert [step for step, _ in losses] == list(range(2 * STEPS)) or [step for step, _ in losses] == list(
            range(1, 2 * STEPS + 1)
        )
        assert losses[-1][1] < losses[0][1]
        assert job["result"]["best"] in job["result"]["checkpoints"]
        assert {"last.ckpt", "metrics.csv", "result.json", job["result"]["best"]} <= set(trainers.artifacts(job["id"]))
        progress = [event["data"] for event in trainers.api.events(job["id"]) if event["type"] == "progress"]
        assert progress
        assert progress[-1].keys() >= {"fraction", "epoch", "step", "steps_per_second", "eta_seconds"}

    def test_two_ranks_fit_as_one(self, trainers: Trainers) -> None:
        body = trainers.body(
            trainer={"devices": 2, "strategy": "ddp_spawn"},
            data={"class_path": "toys.Line", "init_args": {"workers": 1}},
        )
        job = trainers.run(body)
        assert job["plan"]["resolved"] | {"strategy": "ddp", "world_size": 2, "devices": 2} == job["plan"]["resolved"]
        assert job["result"]["world_size"] == 2
        assert job["result"]["steps"] == STEPS  # each rank sees half of the batches
        assert any("ddp_spawn" in warning for warning in job["plan"]["warnings"])
        by_rank = [trainers.api.get(f"/jobs/{job['id']}/logs", params={"rank": rank}).status_code for rank in (0, 1)]
        assert by_rank == [200, 200]

    def test_two_nodes_are_two_workers(self, trainers: Trainers) -> None:
        job = trainers.run(trainers.body(trainer={"num_nodes": 2, "strategy": "ddp"}))
        assert (job["plan"]["workers"], job["plan"]["backend"]) == (2, trainers.engine)
        assert job["result"]["world_size"] == 2
        started = next(
            e for e in trainers.api.events(job["id"]) if e["type"] == "state" and e["data"]["to"] == "running"
        )
        assert len(set(started["data"]["workers"])) == 2

    def test_fabric_runs_one_rank_and_two(self, trainers: Trainers) -> None:
        for fabric, world in (({"devices": 1}, 1), ({"devices": 2, "strategy": "ddp"}, 2)):
            job = trainers.run(trainers.fabric(fabric))
            assert job["result"]["world_size"] == job["result"]["metrics"]["world_size"] == world
            assert job["result"]["metrics"]["loss"] < 1

    def test_a_rank_that_raises_fails_the_job_with_its_own_words(self, trainers: Trainers) -> None:
        for body in (
            trainers.body("Raises", trainer={"devices": 2, "strategy": "ddp"}),
            trainers.fabric({"devices": 2, "strategy": "ddp"}, raises_on=1),
        ):
            error = trainers.run(body, "failed")["error"]
            assert error["type"] == "/problems/training-failed"
            assert error["rank"] == 1
            assert "the toy broke on purpose" in error["traceback"]
            assert "toys.py" in error["traceback"]

    def test_a_rank_that_stops_moving_is_told_as_that(self, trainers: Trainers) -> None:
        body = trainers.body("Hangs", trainer={"devices": 2, "strategy": "ddp"}, params={"stall_seconds": 4.0})
        job = trainers.run(body, "failed")
        assert "4 s" in job["error"]["detail"]
        assert "step" in job["error"]["detail"]
        log = trainers.api.get(f"/jobs/{job['id']}/logs", params={"rank": 1}).text
        assert "before_step_ends" in log  # where it hung
        all_gone(trainers)

    def test_a_rank_that_is_killed_fails_the_job_and_nothing_stays(self, trainers: Trainers) -> None:
        job = trainers.start(
            trainers.body(
                "Hidden", trainer={"devices": 2, "strategy": "ddp", "max_epochs": 1000}, init={"seconds": 0.05}
            )
        )
        training(trainers, job)
        hidden = {p for p in ranks(trainers) if p.name() == "sleep"}
        assert len(hidden) == 2
        victim = next(iter(hidden)).parent()
        assert victim is not None
        victim.kill()
        ended = trainers.api.until(job, "failed", seconds=15)
        assert "kill" in ended["error"]["detail"].lower()
        all_gone(trainers)

    def test_a_cancel_in_mid_epoch_keeps_a_checkpoint_and_a_retry_goes_on(self, trainers: Trainers) -> None:
        # 32 steps an epoch and rank: the cancel comes in the middle of the first.
        data = {"class_path": "toys.Line", "init_args": {"rows": 512}}
        body = trainers.body(
            init={"seconds": 0.1}, data=data, trainer={"devices": 2, "strategy": "ddp", "max_epochs": 1}
        )
        job = trainers.start(body)
        training(trainers, job)
        assert trainers.api.post(f"/jobs/{job}/cancel").status_code == 202
        trainers.api.until(job, "cancelled", seconds=10)
        all_gone(trainers)
        assert "last.ckpt" in trainers.artifacts(job)
        seen = trainers.metric(job, "train_loss")
        assert len(seen) < 30

        again = trainers.api.post(f"/jobs/{job}/retry").json()["id"]
        trainers.api.until(again, "succeeded", seconds=60)
        rows = list(csv.DictReader(io.StringIO(trainers.artifact(again, "metrics.csv").decode())))
        steps = [int(row["step"]) for row in rows if row.get("train_loss")]
        first = seen[0][0]
        assert steps == list(range(first, first + 32))
        assert "last.ckpt" in trainers.api.get(f"/jobs/{again}/logs").text
        assert [step for step, _ in trainers.metric(again, "train_loss")] == steps
        assert [value for _, value in trainers.metric(again, "train_loss")][: len(seen)] == [value for _, value in seen]

    def test_a_loss_that_is_not_a_number_fails_unless_told_to_go_on(self, trainers: Trainers) -> None:
        job = trainers.run(trainers.body("Explodes"), "failed")
        assert "nan" in job["error"]["detail"].lower()
        assert [e for e in trainers.api.events(job["id"]) if e["type"] == "warning" and "5" in str(e["data"])]
        body = trainers.body("Explodes", params={"on_nonfinite_loss": "continue"})
        job = trainers.run(body)
        assert job["result"]["best"] is None or math.isfinite(job["result"]["metrics"]["val_loss"] or math.nan)

    def test_predictions_with_a_checkpoint_of_an_earlier_job(self, trainers: Trainers) -> None:
        fitted = trainers.run(trainers.body(trainer={"max_epochs": 30}))
        ckpt = {"ckpt_path": {"job": fitted["id"], "artifact": "last.ckpt"}}
        job = trainers.run(
            trainers.body(config=ckpt, params={"stage": "predict"}, trainer={"devices": 2, "strategy": "ddp"})
        )
        assert "predictions.parquet" in trainers.artifacts(job["id"])
        table = trainers.api.get(job["links"]["result"], headers={"Accept": "text/csv"}).text
        rows = list(csv.DictReader(io.StringIO(table)))
        assert len(rows) == 64
        found = [float(row["prediction"]) for row in rows]
        assert 0.8 < min(found) < max(found) < 3.2
        validated = trainers.run(trainers.body(config=ckpt, params={"stage": "validate"}))
        assert validated["result"]["metrics"]["val_loss"] < 0.05

    def test_the_forecaster_beats_last_year_on_real_data(self, trainers: Trainers) -> None:
        csv_file = Path(statsmodels.__path__[0]) / "datasets" / "co2" / "co2.csv"
        said = {"time_column": "date", "time_format": "%Y%m%d"}
        dataset = trainers.api.post(
            "/datasets", files={"file": ("co2.csv", csv_file.read_bytes(), "text/csv")}, data=said
        ).json()
        series = {"series": {"dataset": dataset["id"], "column": "co2"}, "context": 104, "bridge": 8}
        body = trainers.body(
            trainer={"max_epochs": 4},
            data={"class_path": "workers.training.data.SeriesWindows", "init_args": series},
            config={
                "model": {
                    "class_path": "workers.training.models.Forecaster",
                    "init_args": {"horizon": 26, "season": 52},
                }
            },
        )
        fitted = trainers.run(body)
        body["params"]["config"]["ckpt_path"] = {"job": fitted["id"], "artifact": fitted["result"]["best"]}
        tested = trainers.run({**body, "params": {**body["params"], "stage": "test"}})
        metrics = tested["result"]["metrics"]
        assert metrics["test_mae"] < 0.6 * metrics["test_mae_naive"]

    def test_a_time_limit_stops_like_a_cancel(self, trainers: Trainers) -> None:
        job = trainers.run(
            trainers.body(init={"seconds": 0.05}, trainer={"max_epochs": 1000}, timeout_seconds=4.0), "failed"
        )
        assert job["error"]["type"] == "/problems/timeout"
        all_gone(trainers)
        eventually(lambda: "last.ckpt" in trainers.artifacts(job["id"]), 10)

    def test_a_killed_worker_and_a_killed_server_cost_no_step(self, trainers: Trainers) -> None:
        """The last test of its server: nothing of it is as it was afterwards."""
        body = trainers.body(init={"seconds": 0.1}, trainer={"max_epochs": 16}, params={"checkpoint_seconds": 1.0})
        job = trainers.start(body)
        training(trainers, job, 20)
        trainers.owner_of(job).kill()
        eventually(lambda: trainers.api.job(job)["attempt"] == 2, 30)
        eventually(lambda: len(trainers.metric(job, "train_loss")) >= 50, 60)
        trainers.house.kill()
        trainers.house.start()
        ended = trainers.api.until(job, "succeeded", seconds=90)
        assert ended["attempt"] == 3
        assert ended["result"]["steps"] == 16 * STEPS
        steps = [step for step, _ in trainers.metric(job, "train_loss")]
        assert steps == list(range(steps[0], steps[0] + 16 * STEPS))
        rows = list(csv.DictReader(io.StringIO(trainers.artifact(job, "metrics.csv").decode())))
        assert [int(row["step"]) for row in rows if row.get("train_loss")] == steps
        assert "last.ckpt" in trainers.api.get(f"/jobs/{job}/logs").text
