"""Training on GPUs through HTTP: what was asked for is what ran, on as many devices, in that precision, with weights shared as said."""

import importlib.util
import io
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api.asking import refused
from tests.house import Api, House, eventually, running
from workers import hardware

PARTS = Path(__file__).with_name("gpu_parts.py")
SECONDS = 180


def model_parallel(**init_args: Any) -> dict[str, Any]:
    """The strategy as an object, for `trainer` and `fabric` by `{package}`."""
    return {"class_path": "lightning.{package}.strategies.ModelParallelStrategy", "init_args": init_args}


@dataclass(frozen=True)
class Case:
    """`share`: of the weights that one process holds between steps, at most."""

    strategy: Any = "auto"
    devices: int = 1
    precision: str = "32-true"
    model: str = "Net"
    share: float = 1.0

    @property
    def half(self) -> float:
        return float(self.precision != "32-true")

    @property
    def family(self) -> str:
        return self.strategy if isinstance(self.strategy, str) else "ModelParallelStrategy"

    def body(self, source: str, mode: str) -> dict[str, Any]:
        strategy = self.strategy
        if isinstance(strategy, dict):
            arguments = dict(strategy["init_args"])
            if mode == "fabric":
                arguments = {**arguments, "parallelize_fn": "gpu_parts.sharded"}
            package = {"trainer": "pytorch", "fabric": "fabric"}[mode]
            strategy = {"class_path": strategy["class_path"].format(package=package), "init_args": arguments}
        how = {"accelerator": "cuda", "devices": self.devices, "strategy": strategy, "precision": self.precision}
        config: dict[str, Any] = {"seed_everything": 1, mode: how}
        if mode == "trainer":
            how |= {"max_epochs": 3, "log_every_n_steps": 1}
            config |= {
                "model": {"class_path": f"gpu_parts.{self.model}"},
                "data": {"class_path": "gpu_parts.Rows"},
            }
        else:
            config["function"] = {"call_path": "gpu_parts.train"}
        return {"kind": "training", "params": {"mode": mode, "config": config, "source": source}}


CASES = [
    Case(),
    Case(precision="16-mixed"),
    Case(precision="bf16-mixed"),
    Case(precision="bf16-true"),
    Case("ddp"),
    Case("ddp", 2),
    Case("ddp", 2, "16-mixed"),
    Case("ddp", 2, "bf16-mixed"),
    Case("fsdp"),
    Case("fsdp", 2, share=0.6),
    Case("fsdp", 2, "16-mixed", share=0.6),
    Case("fsdp", 2, "bf16-mixed", share=0.6),
    Case("deepspeed_stage_2", 1, "bf16-mixed"),
    Case("deepspeed_stage_2", 2, "16-mixed"),
    Case("deepspeed_stage_3", 2, "bf16-mixed"),
    Case(model_parallel(), model="Sharded"),
    Case(model_parallel(tensor_parallel_size=2, data_parallel_size=1), 2, model="Sharded", share=0.6),
    Case(model_parallel(tensor_parallel_size=1, data_parallel_size=2), 2, model="Sharded", share=0.6),
    Case(model_parallel(tensor_parallel_size=2, data_parallel_size=2), 4, model="Sharded", share=0.35),
    Case(model_parallel(save_distributed_checkpoint=False), 2, model="Sharded", share=0.6),
]


def name_of(case: Case) -> str:
    sizes = (
        "".join(f"-{key}={value}" for key, value in case.strategy["init_args"].items())
        if case.model == "Sharded"
        else ""
    )
    return f"{case.family}{sizes}-{case.devices}-{case.precision}"


@pytest.fixture(scope="session")
def devices() -> int:
    """How many devices torch has here; asked of another process, which may touch CUDA."""
    script = "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    found = int(done.stdout.strip() or 0) if done.returncode == 0 else 0
    if not found:
        pytest.skip(f"torch finds no CUDA device here{': ' + done.stderr.strip()[-300:] if done.returncode else ''}")
    return found


def served(engine: str, folder: Path) -> Iterator[Api]:
    environment = {
        "TIDEMILL_ENGINE": engine,
        "TIDEMILL_WORKERS": "1",
        "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true",
        "TIDEMILL_TRAINING_WARM": "true",
    }
    with running(House(folder / "home", environment)) as house, house.api() as api:
        eventually(lambda: api.get("/health/ready").status_code == 200, 120)
        yield api


@pytest.fixture(scope="module")
def api(devices, tmp_path_factory) -> Iterator[Api]:
    yield from served("dask", tmp_path_factory.mktemp("dask"))


@pytest.fixture(scope="module")
def on_ray(devices, tmp_path_factory) -> Iterator[Api]:
    yield from served("ray", tmp_path_factory.mktemp("ray"))


def source_of(api: Api) -> str:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.write(PARTS, PARTS.name)
    answer = api.post("/sources", files={"file": ("gpu.zip", out.getvalue())})
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


def run(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    job = api.until(api.submit(body)["id"], "succeeded", "failed", "cancelled", seconds=SECONDS)
    assert job["state"] == "succeeded", job["error"]
    return job


def check(job: dict[str, Any], case: Case) -> None:
    resolved = job["plan"]["resolved"]
    assert (resolved["accelerator"], resolved["devices"]) == ("cuda", case.devices)
    assert resolved["precision"] == case.precision
    assert resolved["world_size"] == job["result"]["world_size"] == case.devices
    assert case.family in ("auto", resolved["strategy"])
    metrics = job["result"]["metrics"]
    assert (metrics["on_cuda"], metrics["half"]) == (1.0, case.half)
    assert metrics["train_loss"] < 0.5  # it is 1.25 for who predicts 0
    assert 0 < metrics["local_share"] <= case.share or case.family == "deepspeed_stage_3"


def possible(case: Case, devices: int) -> None:
    if case.devices > devices:
        pytest.skip(f"this machine has {devices} GPU(s)")
    if case.family.startswith("deepspeed") and importlib.util.find_spec("deepspeed") is None:
        pytest.skip("deepspeed is not installed")


@pytest.mark.parametrize("mode", ["trainer", "fabric"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_was_asked_for_is_what_ran(api, devices, case, mode):
    possible(case, devices)
    check(run(api, case.body(source_of(api), mode)), case)


@pytest.mark.parametrize("mode", ["trainer", "fabric"])
@pytest.mark.parametrize("case", [Case("ddp"), Case("ddp", 2), Case("fsdp", 2, share=0.6)], ids=name_of)
def test_it_runs_on_ray_too(on_ray, devices, case, mode):
    possible(case, devices)
    check(run(on_ray, case.body(source_of(on_ray), mode)), case)


def test_all_devices_are_taken_where_nothing_else_is_said(api, devices):
    body = Case().body(source_of(api), "trainer")
    body["params"]["config"]["trainer"] |= {"accelerator": "auto", "devices": "auto"}
    job = run(api, body)
    assert job["plan"]["resolved"]["devices"] == job["result"]["world_size"] == devices


def test_a_listed_device_is_the_one_that_is_used(api, devices):
    if devices < 2:
        pytest.skip("this machine has one GPU")
    for index, gpu in enumerate(hardware.gpus()[:2]):
        body = Case().body(source_of(api), "trainer")
        body["params"]["config"]["trainer"]["devices"] = [index]
        log = api.get(f"/jobs/{run(api, body)['id']}/artifacts/log.txt").text
        assert f"device {gpu['uuid'].removeprefix('GPU-')}" in log


def test_more_devices_than_there_are_are_refused(api, devices):
    body = Case("ddp", devices + 1).body(source_of(api), "trainer")
    refused(api.post("/jobs", json=body), 422, "invalid-input", "/params/config/trainer/devices")


@pytest.mark.parametrize("case", [Case("fsdp"), Case("fsdp", 2), Case("ddp", 2, "16-mixed")], ids=name_of)
def test_what_was_trained_on_several_predicts_on_one(api, devices, case):
    possible(case, devices)
    source = source_of(api)
    trained = run(api, case.body(source, "trainer"))
    body = Case().body(source, "trainer")
    body["params"]["stage"] = "predict"
    body["params"]["config"]["ckpt_path"] = {"job": trained["id"], "artifact": "last.ckpt"}
    predicted = run(api, body)
    assert predicted["result"]["predictions"]["rows"] == 1024


def test_a_cancelled_job_gives_its_memory_back_within_seconds(api, devices):
    def free() -> int:
        return int(hardware.gpus()[0]["free_bytes"])

    before = free()
    config = {"fabric": {"accelerator": "cuda", "devices": 1}, "function": {"call_path": "gpu_parts.wait_for_ever"}}
    job = api.submit({"kind": "training", "params": {"mode": "fabric", "config": config, "source": source_of(api)}})
    eventually(lambda: before - free() >= 1 << 30, 120)
    begun = time.monotonic()
    api.post(job["links"]["cancel"])
    api.until(job["id"], "cancelled", seconds=30)
    eventually(lambda: free() >= before - (64 << 20), 10)
    assert time.monotonic() - begun < 20


def test_memory_that_runs_out_on_the_device_is_told_apart(api, devices):
    function = {"call_path": "gpu_parts.wait_for_ever", "kwargs": {"gigabytes": 4096.0}}
    config = {"fabric": {"accelerator": "cuda", "devices": 1}, "function": function}
    job = api.submit({"kind": "training", "params": {"mode": "fabric", "config": config, "source": source_of(api)}})
    ended = api.until(job["id"], "succeeded", "failed", seconds=SECONDS)
    assert ended["error"]["type"] == "/problems/out-of-memory", ended


def test_capabilities_say_what_ran_on_the_device(api, devices):
    told = api.get("/capabilities").json()["training"]
    assert told["accelerators"]["cuda"]["available"] is True
    for name in ("ddp", "fsdp"):
        for mode in ("trainer", "fabric"):
            assert told["strategies"][name][mode]["available"] is True, (name, mode)
