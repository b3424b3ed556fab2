"""One rank and two: what a training that goes well leaves, and what it told meanwhile."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from tests.training.ranks import Ranks, config, shared_ranks  # noqa: F401


def test_one_rank_trains_and_leaves_all_that_was_promised(ranks: Ranks) -> None:
    run = ranks.run(config())
    assert run.value["end"] == "finished"
    result = json.loads((run.folder / "result.json").read_text())
    assert result.pop("provenance") == run.value["provenance"]
    assert result == run.value["summary"]
    assert (result["epochs"], result["steps"], result["world_size"]) == (2, 20, 1)
    assert result["metrics"].keys() == {"train_loss", "val_loss", "mean_x"}
    assert result["best"] in result["checkpoints"]
    assert "last.ckpt" in result["checkpoints"]
    assert run.column("train_loss") == run.metric("train_loss")
    assert [step for step, _ in run.column("train_loss")] == list(range(20))
    assert [step for step, _ in run.column("val_loss")] == [9, 19]
    table = pq.read_table(run.folder / "result.parquet")
    assert table.column_names == ["step", "epoch", "train_loss", "val_loss", "mean_x"]
    assert table.num_rows == 20
    with np.load(run.folder / "result.npz") as stored:
        assert stored["val_loss"][9] == dict(run.column("val_loss"))[9]
    assert run.value["provenance"]["precision"] == "32-true"
    assert run.value["provenance"]["seconds"].keys() == {"building", "training", "saving"}


def test_the_configuration_that_ran_is_told(ranks: Ranks) -> None:
    run = ranks.run(config(accelerator="auto", precision="bf16"), precision="bf16-mixed")
    told = yaml.safe_load((run.folder / "config.yaml").read_text())
    assert told["trainer"]["accelerator"] == "cpu"
    assert told["trainer"]["precision"] == "bf16-mixed"
    assert told["seed_everything"] == 1
    assert told["model"]["init_args"]["lr"] == 0.1


@pytest.mark.parametrize("workers", [0, 1])
def test_two_ranks_are_one_world(ranks: Ranks, workers: int) -> None:
    run = ranks.run(config(rows={"workers": workers}), 2)
    assert run.value["summary"]["world_size"] == 2
    assert run.value["summary"]["steps"] == 10
    assert run.ends[1].answer == {"type": "returned", "value": {"end": "finished"}}
    assert {beat["rank"] for rank in (0, 1) for beat in run.events("beat", rank)} == {0, 1}
    assert run.events("metric", 1) == run.events("progress", 1) == run.events("artifact", 1) == []


def test_one_voice_tells_of_phases_progress_and_checkpoints(ranks: Ranks) -> None:
    run = ranks.run(config())
    assert [event["phase"] for event in run.events("phase")] == ["building", "training", "saving"]
    last = run.events("progress")[-1]
    assert last["fraction"] == 1.0
    assert (last["done"], last["total"], last["unit"], last["epoch"], last["step"]) == (20, 20, "steps", 1, 20)
    assert last["steps_per_second"] > 0
    names = {event["name"] for event in run.events("artifact")}
    assert names >= {"last.ckpt", run.value["summary"]["best"]}
    assert all(
        (run.folder / "last.ckpt").stat().st_size == e["bytes"]
        for e in run.events("artifact")
        if e["name"] == "last.ckpt"
    )


def test_what_ranks_print_is_in_their_own_logs_and_in_the_jobs(ranks: Ranks) -> None:
    run = ranks.run(config("Prints", init={"at": 2}, max_epochs=1), 2)
    assert "hello from 1" in run.log(1)
    assert "hello from 0" not in run.log(1)
    assert {"[rank 0] hello from 0", "[rank 1] hello from 1"} <= set((run.folder / "log.txt").read_text().splitlines())
    assert {"message": "hello from 1", "rank": 1} in run.events("log", 1)
    assert run.log(1).count("more\n") == 400
    assert run.events("log", 1)[-1]["message"] == "Rank 1 says more in log.txt; here it is not shown."
    assert len(run.events("log", 1)) == 301


def test_a_rank_keeps_of_its_environment_only_what_it_needs(ranks: Ranks) -> None:
    from workers.training.environment import clean

    kept = {"PATH": "/bin", "LC_ALL": "C", "NCCL_IB_DISABLE": "1"}
    traps = {"SLURM_NTASKS": "2", "PL_TRAINER_DEVICES": "3", "LT_DEVICES": "2", "NODE_RANK": "1", "LOCAL_RANK": "1"}
    assert clean(kept | traps | {"OMP_NUM_THREADS": "1", "AWS_SECRET_ACCESS_KEY": "x"}) == kept


def test_the_best_checkpoint_is_that_of_the_least_validation_loss(ranks: Ranks) -> None:
    run = ranks.run(config(max_epochs=4, init={"lr": 0.3}))
    losses = run.column("val_loss")
    best = min(losses, key=lambda pair: pair[1])[0]
    assert run.value["summary"]["best"].endswith(f"-step={best + 1}.ckpt")


def test_metrics_of_odd_names_do_not_take_the_place_of_steps_and_epochs(ranks: Ranks) -> None:
    run = ranks.run(config("LogsOddNames"))
    for name in ("train_loss", "val_loss"):
        wanted = list(range(20)) if name == "train_loss" else [9, 19]
        assert [(e["step"], e["epoch"]) for e in run.events("metric") if e["name"] == name] == [
            (step, step // 10) for step in wanted
        ]
        assert [step for step, _ in run.column(name)] == wanted
    assert {event["name"] for event in run.events("metric")} == {"train_loss", "val_loss", "mean_x"}


def test_checkpointing_that_was_declined_leaves_none(ranks: Ranks) -> None:
    run = ranks.run(config(enable_checkpointing=False))
    assert run.value["summary"]["checkpoints"] == []
    assert run.value["summary"]["best"] is None


def test_checkpoints_go_where_the_configuration_says(ranks: Ranks) -> None:
    keep = {
        "class_path": "lightning.pytorch.callbacks.ModelCheckpoint",
        "init_args": {"dirpath": "kept", "monitor": "val_loss", "save_top_k": 2},
    }
    run = ranks.run(config(callbacks=[keep]))
    assert sorted(run.value["summary"]["checkpoints"]) == [
        "kept/epoch=0-step=10.ckpt",
        "kept/epoch=1-step=20.ckpt",
        "last.ckpt",
    ]
    assert run.value["summary"]["best"].startswith("kept/")
    told = yaml.safe_load((run.folder / "config.yaml").read_text())["trainer"]["callbacks"]
    assert [each["class_path"] for each in told] == [keep["class_path"]]
    assert told[0]["init_args"]["save_top_k"] == 2
    assert run.events("warning") == []


def test_loggers_and_a_run_for_a_look_work_too(ranks: Ranks) -> None:
    logger = {
        "class_path": "lightning.pytorch.loggers.CSVLogger",
        "init_args": {"save_dir": "out", "name": "", "version": ""},
    }
    run = ranks.run(config(logger=logger))
    assert (run.folder / "out" / "metrics.csv").exists()
    assert len(run.column("train_loss")) == 20
    look = ranks.run(config(fast_dev_run=True))
    assert look.value["summary"]["steps"] == 1
    bare = ranks.run(config(barebones=True, log_every_n_steps=None, enable_model_summary=None))
    assert bare.value["summary"]["steps"] == 20
