"""Training jobs at the door: what is refused, and where; what it would run as."""

from typing import Any

import pytest

from tests.api.asking import refused
from tests.chaos.acts import SMALL

BORING = "lightning.pytorch.demos.boring_classes"
CONFIG = "/params/config"
TRAINER, FABRIC = f"{CONFIG}/trainer", f"{CONFIG}/fabric"


def job(
    trainer: dict[str, Any] | None = None, execution: dict[str, Any] | None = None, **config: Any
) -> dict[str, Any]:
    told = {
        "trainer": {"accelerator": "cpu", "max_epochs": 1, **(trainer or {})},
        "model": {"class_path": f"{BORING}.BoringModel"},
        "data": {"class_path": f"{BORING}.BoringDataModule"},
        **config,
    }
    return {"kind": "training", "params": {"config": told}, "execution": execution or {}}


def fabric(
    call_path: str = "workers.training.loops.fit", kwargs: dict[str, Any] | None = None, **fabric: Any
) -> dict[str, Any]:
    given = {"series": {"values": [float(i % 7) for i in range(90)]}, "context": 14} if kwargs is None else kwargs
    config = {"fabric": {"accelerator": "cpu", **fabric}, "function": {"call_path": call_path, "kwargs": given}}
    return {"kind": "training", "params": {"mode": "fabric", "config": config}}


def on(strategy: Any, **trainer: Any) -> dict[str, Any]:
    return job({"devices": 2, "strategy": strategy, **trainer})


def strategy(name: str, **init: Any) -> dict[str, Any]:
    return {"class_path": f"lightning.pytorch.strategies.{name}", "init_args": init}


CALLBACK = {"class_path": "lightning.pytorch.callbacks.ModelCheckpoint"}
BY_THE_TABLE = {
    "cuda where there is none": (job({"accelerator": "cuda"}), f"{TRAINER}/accelerator"),
    "gpu where there is none": (job({"accelerator": "gpu"}), f"{TRAINER}/accelerator"),
    "mps": (job({"accelerator": "mps"}), f"{TRAINER}/accelerator"),
    "tpu": (job({"accelerator": "tpu"}), f"{TRAINER}/accelerator"),
    "an accelerator nobody knows": (job({"accelerator": "abacus"}), f"{TRAINER}/accelerator"),
    "no devices": (job({"devices": 0}), f"{TRAINER}/devices"),
    "all devices of a cpu": (job({"devices": -1}), f"{TRAINER}/devices"),
    "a list of devices on a cpu": (job({"devices": [0, 1]}), f"{TRAINER}/devices"),
    "half a device": (job({"devices": 1.5}), f"{TRAINER}/devices"),
    "no nodes": (job({"num_nodes": 0}), f"{TRAINER}/num_nodes"),
    "fsdp on a cpu": (on("fsdp"), f"{TRAINER}/strategy"),
    "deepspeed on a cpu": (on("deepspeed_stage_3"), f"{TRAINER}/strategy"),
    "xla": (on("xla"), f"{TRAINER}/strategy"),
    "a strategy nobody knows": (on("dpp"), f"{TRAINER}/strategy"),
    "fsdp as an object": (on(strategy("FSDPStrategy", cpu_offload=True)), f"{TRAINER}/strategy"),
    "deepspeed as an object": (on(strategy("DeepSpeedStrategy", stage=3)), f"{TRAINER}/strategy"),
    "one process for several": (on("single_device"), f"{TRAINER}/strategy"),
    "a precision nobody knows": (job({"precision": "fp16"}), f"{TRAINER}/precision"),
    "transformer-engine": (job({"precision": "transformer-engine"}), f"{TRAINER}/precision"),
    "bitsandbytes": (
        job(
            {
                "plugins": {
                    "class_path": "lightning.pytorch.plugins.precision.BitsandbytesPrecision",
                    "init_args": {"mode": "nf4"},
                }
            }
        ),
        f"{TRAINER}/plugins/class_path",
    ),
    "an absolute folder": (job({"default_root_dir": "/elsewhere"}), f"{TRAINER}/default_root_dir"),
    "a folder that climbs out": (
        job({"callbacks": [{**CALLBACK, "init_args": {"dirpath": "../x"}}]}),
        f"{TRAINER}/callbacks/0/init_args/dirpath",
    ),
    "a checkpoint by path": (job(ckpt_path="best.ckpt"), f"{CONFIG}/ckpt_path"),
    "a checkpoint by URL": (job(ckpt_path="http://127.0.0.1/x.ckpt"), f"{CONFIG}/ckpt_path"),
    "a checkpoint of no job": (job(ckpt_path={"job": "job_none", "artifact": "last.ckpt"}), f"{CONFIG}/ckpt_path/job"),
    "weights that run code": (job(weights_only=False), f"{CONFIG}/weights_only"),
    "a class off the list": (job(model={"class_path": "os.path.join"}), f"{CONFIG}/model/class_path"),
    "a file for a model": (job(model="model.yaml"), f"{CONFIG}/model"),
    "a dataset that is not there": (
        job(
            data={
                "class_path": "workers.training.data.Table",
                "init_args": {"table": {"dataset": "ds_none"}, "target": "y"},
            }
        ),
        f"{CONFIG}/data/init_args/table/dataset",
    ),
    "a function off the list": (fabric("os.system"), f"{CONFIG}/function/call_path"),
    "fabric's fsdp on a cpu": (fabric(devices=2, strategy="fsdp"), f"{FABRIC}/strategy"),
    "a package where none may be sent": (
        {"kind": "training", "params": {"config": job()["params"]["config"], "source": "src_none"}},
        "/params/source",
    ),
    "tiles": (job(execution={"implementation": "tiles"}), "/execution/implementation"),
    "a cpu on cuda": (job(execution={"backend": "cuda"}), "/execution/backend"),
    "no configuration": ({"kind": "training", "params": {}}, "/params/config"),
    "a stage nobody knows": ({"kind": "training", "params": {"stage": "tune", "config": {}}}, "/params/stage"),
}
BY_A_WORKER = {
    "a key nobody knows": (job({"max_epoch": 1}), f"{TRAINER}/max_epoch"),
    "words for a number": (job({"max_epochs": "many"}), f"{TRAINER}/max_epochs"),
    "an argument nobody knows": (
        job(model={"class_path": "workers.training.models.Forecaster", "init_args": {"horizons": 3}}),
        f"{CONFIG}/model/init_args/horizons",
    ),
    "an argument that lacks": (
        job(data={"class_path": "workers.training.data.SeriesWindows"}),
        f"{CONFIG}/data/init_args",
    ),
    "a model that is none": (job(model={"class_path": f"{BORING}.BoringDataModule"}), f"{CONFIG}/model"),
    "a class that is not there": (job(model={"class_path": f"{BORING}.Missing"}), f"{CONFIG}/model/class_path"),
    "a function's argument nobody knows": (
        fabric(kwargs={"series": {"values": [1.0]}, "context": 3, "epoch": 1}),
        f"{CONFIG}/function/kwargs/epoch",
    ),
    "a function's argument that lacks": (fabric(kwargs={"context": 3}), f"{CONFIG}/function/kwargs"),
}


@pytest.mark.parametrize(("body", "pointer"), BY_THE_TABLE.values(), ids=list(BY_THE_TABLE))
def test_what_the_table_refuses_is_named_with_its_place(api, body, pointer):
    for path in ("/jobs", "/jobs/plan"):
        refused(api.post(path, json=body), 422, "invalid-input", pointer)


@pytest.mark.parametrize(("body", "pointer"), BY_A_WORKER.values(), ids=list(BY_A_WORKER))
def test_what_a_worker_finds_in_the_configuration_is_named_with_its_place(api, body, pointer):
    answer = api.post("/jobs/plan", json=body)
    assert answer.status_code == 422, answer.text
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text


RESOLVES = {
    "one process": (job(), {"strategy": "single_device", "devices": 1, "world_size": 1, "precision": "32-true"}),
    "a name that spawns": (on("ddp_spawn"), {"strategy": "ddp", "devices": 2, "world_size": 2}),
    "half precision on a cpu": (job({"precision": "16-mixed"}), {"precision": "bf16-mixed"}),
    "an alias": (job({"precision": 64}), {"precision": "64-true"}),
    "devices as text": (on("ddp", devices="2"), {"devices": 2, "world_size": 2}),
    "automatic": (job({"accelerator": "auto", "devices": "auto"}), {"accelerator": "cpu", "devices": 1}),
    "two nodes": (job({"num_nodes": 2}), {"num_nodes": 2, "strategy": "ddp", "world_size": 2}),
    "fabric": (fabric(devices=2, strategy="ddp", precision="bf16-mixed"), {"world_size": 2, "precision": "bf16-mixed"}),
    "a strategy as an object": (on(strategy("DDPStrategy", find_unused_parameters=True)), {"world_size": 2}),
}


@pytest.mark.parametrize(("body", "resolved"), RESOLVES.values(), ids=list(RESOLVES))
def test_the_plan_shows_what_will_really_run(api, body, resolved):
    answer = api.post("/jobs/plan", json=body)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert plan["resolved"] | resolved == plan["resolved"]
    assert plan["implementation"] == "lightning"
    if resolved.get("strategy") == "ddp" and body["params"]["config"].get("trainer", {}).get("strategy") == "ddp_spawn":
        assert any("ddp_spawn" in warning for warning in plan["warnings"])
    if resolved.get("precision") == "bf16-mixed" and "trainer" in body["params"]["config"]:
        assert any("bf16-mixed" in warning for warning in plan["warnings"])


def test_more_nodes_than_workers_wait_and_say_so_or_are_refused(api):
    nodes = {"num_nodes": 3, "strategy": "ddp"}
    body = job(nodes, {"fallback": "forbid"})
    refused(api.post("/jobs", json=body), 409, "backend-unavailable", f"{TRAINER}/num_nodes")
    why = "it needs 3 workers of one cluster at once, and the dask cluster has 2 that could take part; let 1 more join"
    waits = api.submit(job(nodes))
    try:
        assert any(why in warning for warning in waits["plan"]["warnings"])
        assert waits["plan"]["resolved"]["num_nodes"] == 3
        assert api.submit(SMALL, Prefer="wait=30")["state"] == "succeeded"  # nobody waits behind it
        told = api.get(f"/jobs/{waits['id']}/explain").json()
        assert (told["never"], why in told["summary"]) == (why, True)
    finally:
        assert api.post(f"/jobs/{waits['id']}/cancel").status_code == 202
    assert api.until(waits["id"], "cancelled")["attempt"] == 0


def test_a_backend_that_is_not_there_may_be_forbidden(api):
    refused(
        api.post("/jobs", json=job({"accelerator": "auto"}, {"backend": "cuda", "fallback": "forbid"})),
        409,
        "backend-unavailable",
        "/execution/backend",
    )
    refused(
        api.post("/jobs", json=job(execution={"backend": "ray", "fallback": "forbid"})),
        409,
        "backend-unavailable",
        "/execution/backend",
    )
    plan = api.post("/jobs/plan", json=job(execution={"backend": "ray"})).json()
    assert plan["fallback"]["wanted"] == "ray"
