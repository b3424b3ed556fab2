"""The rules of training jobs, each against Lightning itself where it can tell, and with the pointer that a person needs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workers.contract import Probe, SeriesReference, TrainingParams
from workers.training.rules import (
    DEFAULT_ALLOW,
    Checked,
    Machine,
    arguments_of,
    check,
    is_allowed,
    is_reference,
    modules_of,
    references,
    with_replaced,
)
from workers.training.rules.__main__ import markdown
from workers.training.rules.evidence import capabilities
from workers.training.rules.precisions import CANONICAL, PRECISIONS
from workers.training.rules.strategies import OBJECTS, STRATEGIES
from workers.training.rules.words import BOTH

BORING = "lightning.pytorch.demos.boring_classes"
MODEL = {"class_path": f"{BORING}.BoringModel"}
FUNCTION = {"call_path": "workers.training.loops.fit"}
GPUS = Machine(cuda_devices=4, packages={"deepspeed": True, "transformer_engine": True, "bitsandbytes": True})
NONE = Machine(packages={"deepspeed": False, "transformer_engine": False, "bitsandbytes": False})


def asked(section: Mapping[str, Any] = {}, mode: str = "trainer", stage: str = "fit", **config: Any) -> TrainingParams:
    rest = {"model": MODEL} if mode == "trainer" else {"function": FUNCTION}
    return TrainingParams(mode=mode, stage=stage, config={mode: dict(section), **rest, **config})


def checked(section: Mapping[str, Any] = {}, mode: str = "trainer", machine: Machine = NONE, **rest: Any) -> Checked:
    return check(asked(section, mode, **rest), machine, DEFAULT_ALLOW)


def faults(
    section: Mapping[str, Any] = {}, mode: str = "trainer", machine: Machine = NONE, **rest: Any
) -> dict[str, str]:
    """pointer below `/params/config` → detail."""
    answer = checked(section, mode, machine, **rest)
    assert (answer.resolved is None) == bool(answer.faults)
    return {fault.pointer.removeprefix("/params/config"): fault.detail for fault in answer.faults}


def strategy(name: str, mode: str = "trainer", **arguments: Any) -> dict[str, Any]:
    package = {"trainer": "lightning.pytorch", "fabric": "lightning.fabric"}[mode]
    return {"class_path": f"{package}.strategies.{name}", "init_args": arguments}


# ---- beside Lightning ------------------------------------------------------------------------------------------

CPU: dict[str, Any] = {"accelerator": "cpu", "devices": 1}
ON_CPU: list[dict[str, Any]] = [
    *({"accelerator": name, "devices": 1} for name in ("auto", "cpu", "cuda", "gpu", "mps", "tpu", "hpu", "ipu")),
    *(
        {"accelerator": "cpu", "devices": each}
        for each in (1, 2, "2", "auto", 0, "0", [], -1, "-1", [0], "0,1", 1.5, None, "x")
    ),
    *({**CPU, "num_nodes": each} for each in (1, 2, 0, -1)),
    *({**CPU, "precision": each} for each in (*CANONICAL, None, "fp16", "fp32", "bf16_mixed", "8", 8)),
    *({**CPU, "strategy": name} for name in (*STRATEGIES, "ddp_fork_find", "FSDP", "Ddp", "bagua")),
    {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "num_nodes": 3, "precision": "bf16-mixed"},
]
ON_CUDA: list[dict[str, Any]] = [
    *(
        {"accelerator": "cuda", "devices": each}
        for each in (1, 4, 5, -1, "-1", "auto", [0, 3], [0, 4], [1, 1], "1,", "0,2", "0", [], 0)
    ),
    *(
        {"accelerator": "gpu", "devices": 2, "strategy": name}
        for name in ("auto", "ddp", "ddp_spawn", "fsdp", "fsdp_cpu_offload", "dp")
    ),
    *(
        {"accelerator": "cuda", "devices": 2, "strategy": name, "precision": precision}
        for name in ("ddp", "fsdp")
        for precision in PRECISIONS
        if name == "fsdp" or not precision.startswith("transformer")
    ),
    {"accelerator": "cpu", "devices": 2, "strategy": "fsdp"},
]


def objects(mode: str) -> list[tuple[dict[str, Any], int]]:
    mesh = {"parallelize_fn": "f"} if mode == "fabric" else {}
    return [
        ({**CPU, "devices": 2, "strategy": strategy("DDPStrategy", mode, find_unused_parameters=True)}, 0),
        ({**CPU, "strategy": strategy("FSDPStrategy", mode)}, 0),
        ({"accelerator": "cuda", "devices": 2, "strategy": strategy("FSDPStrategy", mode, cpu_offload=True)}, 4),
        *(
            (
                {
                    "accelerator": "cuda",
                    "devices": 2,
                    "strategy": strategy("ModelParallelStrategy", mode, **mesh),
                    "precision": each,
                },
                4,
            )
            for each in PRECISIONS
        ),
    ]


CASES: list[tuple[str, dict[str, Any], int]] = [
    *((mode, case, 0) for mode in ("trainer", "fabric") for case in ON_CPU),
    *((mode, case, 4) for mode in ("trainer", "fabric") for case in ON_CUDA),
    *((mode, case, cuda) for mode in ("trainer", "fabric") for case, cuda in objects(mode)),
]


@pytest.fixture(scope="module")
def lightning() -> Any:
    """Lightning's own answers, from one process."""
    question = json.dumps({"cases": CASES, "precisions": list(PRECISIONS)})
    ran = subprocess.run(
        [sys.executable, "-m", "tests.training.lightning_says"],
        input=question,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_every_case_is_taken_or_refused_as_lightning_does(lightning: Any) -> None:
    differing = []
    for (mode, section, cuda), objection in zip(CASES, lightning["cases"], strict=True):
        machine = GPUS if cuda else NONE
        if (objection is None) != (not (ours := faults(section, mode, machine))):
            differing.append((mode, section, objection, ours))
    assert differing == []


def test_both_registries_are_in_the_table_name_by_name(lightning: Any) -> None:
    for mode, names in lightning["names"].items():
        assert {name for name, row in STRATEGIES.items() if mode in row.modes} == {*names, "auto"}
    for mode, classes in lightning["classes"].items():
        assert {name for name, row in OBJECTS.items() if mode in row.modes} == set(classes)


def test_fsdp_and_deepspeed_take_the_precisions_that_the_table_says(lightning: Any) -> None:
    for family in ("fsdp", "deepspeed"):
        assert {name: family not in row.not_with for name, row in PRECISIONS.items()} == lightning[family]


# ---- what really runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "mode", "machine", "runs"),
    [
        ({}, "trainer", NONE, ("cpu", 1, 1, "single_device", "32-true")),
        ({"devices": 2}, "trainer", NONE, ("cpu", 2, 1, "ddp", "32-true")),
        ({"num_nodes": 2}, "fabric", NONE, ("cpu", 1, 2, "ddp", "32-true")),
        ({}, "trainer", GPUS, ("cuda", 4, 1, "ddp", "32-true")),
        ({"devices": "1,3", "precision": "bf16"}, "trainer", GPUS, ("cuda", 2, 1, "ddp", "bf16-mixed")),
        ({"accelerator": "cpu", "devices": 3, "precision": 16}, "trainer", GPUS, ("cpu", 3, 1, "ddp", "bf16-mixed")),
        (
            {"accelerator": "gpu", "devices": 1, "precision": 16},
            "trainer",
            GPUS,
            ("cuda", 1, 1, "single_device", "16-mixed"),
        ),
        ({"devices": 2, "strategy": "ddp_spawn"}, "trainer", NONE, ("cpu", 2, 1, "ddp", "32-true")),
        (
            {"devices": 2, "strategy": "ddp_notebook_find_unused_parameters_false"},
            "trainer",
            NONE,
            ("cpu", 2, 1, "ddp_find_unused_parameters_false", "32-true"),
        ),
        ({"devices": 2, "strategy": "dp"}, "fabric", NONE, ("cpu", 2, 1, "ddp", "32-true")),
        (
            {"devices": 4, "strategy": "deepspeed_stage_3"},
            "trainer",
            GPUS,
            ("cuda", 4, 1, "deepspeed_stage_3", "32-true"),
        ),
        (
            {"devices": 4, "strategy": strategy("ModelParallelStrategy", data_parallel_size=2, tensor_parallel_size=2)},
            "trainer",
            GPUS,
            ("cuda", 4, 1, "ModelParallelStrategy", "32-true"),
        ),
        (
            {
                "devices": 1,
                "plugins": {
                    "class_path": "lightning.pytorch.plugins.BitsandbytesPrecision",
                    "init_args": {"mode": "nf4"},
                },
            },
            "trainer",
            GPUS,
            ("cuda", 1, 1, "single_device", "BitsandbytesPrecision"),
        ),
    ],
)
def test_what_really_runs(section: Any, mode: str, machine: Machine, runs: tuple[Any, ...]) -> None:
    resolved = checked(section, mode, machine).resolved
    assert resolved is not None
    assert (resolved.accelerator, resolved.devices, resolved.num_nodes, resolved.strategy, resolved.precision) == runs
    assert resolved.world_size == resolved.devices * resolved.num_nodes


def test_indices_are_kept_and_defaults_are_explained() -> None:
    assert checked({"devices": "1,3"}, machine=GPUS).resolved.device_indices == [1, 3]  # type: ignore[union-attr]
    reasons = checked({"devices": 2}).reasons
    assert any('"auto" is cpu: no worker has a CUDA device' in reason for reason in reasons)
    assert any('"auto" is ddp' in reason for reason in reasons)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"devices": 2, "strategy": "ddp_fork"}, "'ddp_fork' runs as 'ddp'"),
        ({"precision": "16-mixed"}, "runs as 'bf16-mixed'"),
        ({"precision": 16}, "16 means '16-mixed'"),
        ({"precision": "16-true"}, "bf16-true has the range of 32 bits"),
        ({"enable_checkpointing": False}, "begins again"),
    ],
)
def test_what_is_changed_or_doubtful_is_told(section: Any, words: str) -> None:
    assert any(words in warning for warning in checked(section).warnings)


def test_what_trainer_is_built_with() -> None:
    single = checked({}).resolved
    mesh = checked({"devices": 4, "strategy": strategy("ModelParallelStrategy")}, machine=GPUS).resolved
    assert single is not None
    assert mesh is not None
    assert arguments_of(single)["strategy"] == "auto"
    assert arguments_of(mesh) == {"accelerator": "cuda", "devices": 4, "num_nodes": 1, "precision": "32-true"}


# ---- refusals, with their places -------------------------------------------------------------------------------

PLUGINS = "lightning.pytorch.plugins"
REFUSED: list[tuple[dict[str, Any], str, Machine, str, str]] = [
    ({"accelerator": "mps"}, "trainer", GPUS, "accelerator", "Apple"),
    ({"accelerator": "tpu"}, "fabric", GPUS, "accelerator", "torch_xla"),
    ({"accelerator": 3}, "trainer", GPUS, "accelerator", "is no accelerator"),
    ({"accelerator": "cuda"}, "trainer", Machine(cuda_reason="the driver is asleep"), "accelerator", "the driver is asleep"),
    ({"accelerator": "cpu", "devices": [0]}, "trainer", GPUS, "devices", "names GPUs"),
    ({"devices": True}, "trainer", NONE, "devices", "true"),
    ({"devices": 65}, "trainer", NONE, "devices", "64"),
    ({"devices": [0, 7]}, "trainer", GPUS, "devices", "device 7"),
    ({"num_nodes": 3}, "trainer", Machine(nodes={"dask": 2, "ray": 1}), "num_nodes", "dask has 2, ray has 1"),
    ({"num_nodes": 2}, "trainer", Machine(nodes={}), "num_nodes", "there are none"),
    ({"devices": 2, "strategy": "single_device"}, "trainer", NONE, "strategy", "one process"),
    ({"strategy": "single_device"}, "fabric", NONE, "strategy", "Trainer has"),
    ({"strategy": "xla_debug"}, "trainer", GPUS, "strategy", "TPUs"),
    ({"strategy": "fsdp"}, "trainer", NONE, "strategy", "no worker has a CUDA device"),
    ({"accelerator": "cpu", "strategy": "deepspeed"}, "trainer", GPUS, "strategy", 'accelerator "cuda"'),
    ({"strategy": "deepspeed"}, "trainer", Machine(4, packages={"deepspeed": False}), "strategy", "package 'deepspeed'"),
    ({"strategy": 3}, "trainer", NONE, "strategy", "must be a name"),
    ({"strategy": strategy("SingleDeviceStrategy", device="cpu")}, "trainer", NONE, "strategy/class_path", "devices: 1"),
    ({"strategy": strategy("DDPStrategy", "fabric")}, "trainer", NONE, "strategy/class_path", "lightning.pytorch.strategies"),
    ({"strategy": strategy("DDPStrategy", start_method="spawn")}, "trainer", NONE, "strategy/init_args/start_method", "itself"),
    ({"strategy": strategy("FSDPStrategy", cluster_environment={})}, "trainer", GPUS, "strategy/init_args/cluster_environment", "itself"),
    ({"strategy": strategy("DeepSpeedStrategy", config="ds.json")}, "trainer", GPUS, "strategy/init_args/config", "read as a file"),
    ({"strategy": strategy("DeepSpeedStrategy", nvme_path="/mnt")}, "trainer", GPUS, "strategy/init_args/nvme_path", "run this service"),
    ({"devices": 4, "strategy": strategy("ModelParallelStrategy", tensor_parallel_size=3)}, "trainer", GPUS,
     "strategy/init_args/tensor_parallel_size", "must be the 4"),
    ({"devices": 4, "strategy": strategy("ModelParallelStrategy", data_parallel_size=0)}, "trainer", GPUS,
     "strategy/init_args/data_parallel_size", "from 1 up"),
    ({"devices": 4, "strategy": strategy("ModelParallelStrategy", "fabric")}, "fabric", GPUS, "strategy/init_args", "parallelize_fn"),
    ({"precision": "transformer-engine"}, "trainer", NONE, "precision", "none for the CPU"),
    ({"precision": "transformer-engine"}, "trainer", Machine(1, packages={"transformer_engine": False}), "precision", "transformer_engine"),
    ({"strategy": "fsdp", "precision": "64-true"}, "trainer", GPUS, "precision", "32 or 16"),
    ({"plugins": {"class_path": f"{PLUGINS}.BitsandbytesPrecision"}}, "trainer", NONE, "plugins/class_path", "needs CUDA"),
    ({"plugins": [{"class_path": f"{PLUGINS}.AsyncCheckpointIO"}]}, "trainer", NONE, "plugins/0/class_path", "stopped"),
    ({"plugins": [{"class_path": f"{PLUGINS}.environments.SLURMEnvironment"}]}, "trainer", NONE, "plugins/0/class_path", "torchrun"),
    ({"plugins": [{"class_path": f"{PLUGINS}.FSDPPrecision"}]}, "trainer", GPUS, "plugins/0/class_path", "belongs to"),
    ({"plugins": [{"class_path": f"{PLUGINS}.HalfPrecision"}, {"class_path": f"{PLUGINS}.DoublePrecision"}]}, "trainer", NONE,
     "plugins/1", "second"),
    ({"precision": "32-true", "plugins": {"class_path": f"{PLUGINS}.HalfPrecision"}}, "trainer", NONE, "precision", "twice"),
    ({"strategy": "fsdp", "gradient_clip_val": 1.0}, "trainer", GPUS, "gradient_clip_val", '"value"'),
    ({"strategy": "deepspeed", "gradient_clip_val": 1.0, "gradient_clip_algorithm": "value"}, "trainer", GPUS,
     "gradient_clip_algorithm", '"norm"'),
    ({"gradient_clip_algorithm": "l3"}, "trainer", NONE, "gradient_clip_algorithm", '"norm" or "value"'),
    ({"accumulate_grad_batches": 0}, "trainer", NONE, "accumulate_grad_batches", "at least 1"),
    ({"barebones": True}, "trainer", NONE, "barebones", "checkpoints"),
    ({"enable_checkpointing": False, "callbacks": [{"class_path": "lightning.pytorch.callbacks.ModelCheckpoint"}]}, "trainer", NONE,
     "callbacks/0", "enable_checkpointing"),
    ({"default_root_dir": "/tmp"}, "trainer", NONE, "default_root_dir", "relative"),
    ({"logger": {"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": {"save_dir": "../x"}}}, "trainer", NONE,
     "logger/init_args/save_dir", "relative"),
    ({"callbacks": [{"class_path": "lightning.pytorch.callbacks.ModelCheckpoint", "init_args": {"dirpath": "s3://bucket"}}]}, "trainer",
     NONE, "callbacks/0/init_args/dirpath", "relative"),
    ({"callbacks": "EarlyStopping"}, "trainer", NONE, "callbacks", "name of a file"),
    ({"callbacks": [{"class_path": "os.system"}]}, "trainer", NONE, "callbacks/0/class_path", "nothing of it was imported"),
    ({"callbacks": []}, "fabric", NONE, "callbacks", "kwargs"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "mode", "machine", "place", "words"), REFUSED)
def test_a_refusal_has_its_place_and_its_reason(
    section: Any, mode: str, machine: Machine, place: str, words: str
) -> None:
    found = faults(section, mode, machine)
    assert list(found) == [f"/{mode}/{place}"]
    assert words in found[f"/{mode}/{place}"]


@pytest.mark.parametrize(
    ("config", "place", "words"),
    [
        ({"modle": {}}, "/modle", "is no key"),
        ({"model": None}, "/model", "is missing"),
        ({"model": "model.yaml"}, "/model", "name of a file"),
        ({"model": {"class": "x"}}, "/model", "`class_path` is missing"),
        ({"model": {**MODEL, "out_dim": 3}}, "/model/out_dim", "init_args"),
        ({"model": {**MODEL, "init_args": "args.yaml"}}, "/model/init_args", "name of a file"),
        ({"model": {"class_path": "torch.hub.load"}}, "/model/class_path", "not on the list"),
        ({"model": {"class_path": "../x"}}, "/model/class_path", "no dotted path"),
        ({"model": {"class_path": MODEL["class_path"] + "x.y"}}, None, ""),
        ({"trainer": "trainer.yaml"}, "/trainer", "name of a file"),
        ({"ckpt_path": "last"}, "/ckpt_path", '{"job"'),
        ({"ckpt_path": "https://x/y.ckpt"}, "/ckpt_path", "URL"),
        ({"ckpt_path": {"job": "job_1"}}, "/ckpt_path", "artifact"),
        ({"ckpt_path": {"job": "job_1", "artifact": "../x"}}, "/ckpt_path/artifact", "no name"),
        ({"ckpt_path": {"job": "job_1", "artifact": "last.ckpt"}, "weights_only": True}, None, ""),
        ({"weights_only": False}, "/weights_only", "run any code"),
        ({"seed_everything": -1}, "/seed_everything", "from 0"),
        ({"lr_scheduler": {"class_path": "torch.optim.lr_scheduler.StepLR"}}, "/lr_scheduler", "optimizer"),
        ({"data": {"class_path": "workers.training.data.SeriesWindows", "init_args": {"series": "/etc/passwd"}}},
         "/data/init_args/series", "reference"),
        ({"data": {"class_path": "workers.training.data.SeriesWindows", "init_args": {"series": [{"dataset": "a"}, "b"]}}},
         "/data/init_args/series/1", "reference"),
        ({"data": {"class_path": "workers.training.data.Table", "init_args": {"table": {"dataset": "a", "values": [1]}}}},
         "/data/init_args/table", "not both"),
    ],
)  # fmt: skip
def test_the_rest_of_a_configuration(config: Any, place: str | None, words: str) -> None:
    found = faults(**config) if "trainer" not in config else _whole(config)
    assert list(found) == ([place] if place else [])
    assert words in found.get(place or "", "")


def _whole(config: dict[str, Any]) -> dict[str, str]:
    answer = check(TrainingParams(config={"model": MODEL, **config}), NONE, DEFAULT_ALLOW)
    return {fault.pointer.removeprefix("/params/config"): fault.detail for fault in answer.faults}


REFERENCE = {"dataset": "ds_1", "column": "x"}
PL = "lightning.pytorch"


def built(path: str, /, **arguments: Any) -> dict[str, Any]:
    return {"class_path": path, "init_args": arguments}


OUT: list[tuple[str, dict[str, Any], str]] = [
    # A reference becomes an absolute path, in a dataset's own folder.
    *(
        ("trainer", {"callbacks": [built(f"{PL}.callbacks.ModelCheckpoint", **{key: REFERENCE})]}, f"callbacks/0/init_args/{key}")
        for key in ("filename", "dirpath", "monitor")
    ),
    ("trainer", {"callbacks": [{"class_path": "ModelCheckpoint", "dict_kwargs": {"filename": REFERENCE}}]},
     "callbacks/0/dict_kwargs/filename"),
    ("trainer", {"logger": built(f"{PL}.loggers.CSVLogger", save_dir="a", name=REFERENCE, version=[REFERENCE])},
     "logger/init_args/name logger/init_args/version/0"),
    ("trainer", {"default_root_dir": REFERENCE}, "default_root_dir"),
    ("trainer", {"callbacks": [built("mine.Callback", inner={"x": [{"values": [1.0]}]})]}, "callbacks/0/init_args/inner/x/0"),
    ("fabric", {"loggers": built("lightning.fabric.loggers.CSVLogger", root_dir=REFERENCE)}, "loggers/init_args/root_dir"),
    # Texts, under whatever name an argument goes.
    *(
        ("trainer", {"profiler": built(f"{PL}.profilers.AdvancedProfiler", dirpath=path)}, "profiler/init_args/dirpath")
        for path in ("/tmp", "~", "~root/x", "$HOME", "a/../..", "file:x", "LOCAL:/x", "simplecache::/x", "s3://x", "a\0b")
    ),
    ("trainer", {"callbacks": [built(f"{PL}.callbacks.SpikeDetection", exclude_batches_path="/x")]},
     "callbacks/0/init_args/exclude_batches_path"),
    ("trainer", {"logger": built(f"{PL}.loggers.MLFlowLogger", tracking_uri="sqlite:////x", artifact_location="/x")},
     "logger/init_args/tracking_uri logger/init_args/artifact_location"),
    ("trainer", {"strategy": built(f"{PL}.strategies.DDPStrategy", config={"csv": {"output_path": "../x"}})},
     "strategy/init_args/config/csv/output_path"),
    # Lightning writes `name=value` for `{name}`, and a number as a letter for `{step:c}`.
    *(
        ("trainer", {"callbacks": [built(f"{PL}.callbacks.ModelCheckpoint", filename=name)]}, "callbacks/0/init_args/filename")
        for name in ("{/tmp/x}", "{../x}", "{step:c}tmp", "{step:/>3}", "{x!r}", "{step:{x}}", "{x")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "section", "places"), OUT)
def test_nothing_is_written_outside_the_jobs_folder(mode: str, section: dict[str, Any], places: str) -> None:
    answer = check(asked(section, mode), NONE, (*DEFAULT_ALLOW, "mine"))
    found = [fault.pointer.removeprefix(f"/params/config/{mode}/") for fault in answer.faults]
    assert found == places.split()


def test_references_and_paths_of_lightnings_classes_inside_the_users_own() -> None:
    inner = {
        "logger": built(f"{PL}.loggers.CSVLogger", save_dir="/x", name=REFERENCE),
        "save_dir": REFERENCE,
        "path": REFERENCE,
    }
    answer = check(asked(model=built("mine.Net", **inner)), NONE, (*DEFAULT_ALLOW, "mine"))
    places = [fault.pointer.removeprefix("/params/config/model/init_args/") for fault in answer.faults]
    assert places == ["logger/init_args/save_dir", "logger/init_args/name", "save_dir"]


def test_paths_below_the_jobs_folder_are_taken() -> None:
    callbacks = [
        built(f"{PL}.callbacks.ModelCheckpoint", dirpath="out", filename="best-{epoch:02d}-{val/loss:.3f}-{step}"),
        built(f"{PL}.callbacks.ThroughputMonitor", separator="/"),
    ]
    logger = [built(f"{PL}.loggers.CSVLogger", save_dir="logs", name="a/b", version="v..1"),
              built(f"{PL}.loggers.MLFlowLogger", tracking_uri="http://mlflow:5000")]  # fmt: skip
    assert faults({"callbacks": callbacks, "logger": logger}) == {}


def test_demos_write_below_the_jobs_folder_alone_and_functions_of_lightnings_are_off_the_list() -> None:
    data = built(f"{PL}.demos.mnist_datamodule.MNISTDataModule", data_dir="/x")
    assert list(faults(data=data)) == ["/data/init_args/data_dir"]
    function = {"call_path": "lightning.fabric.strategies.fsdp._distributed_checkpoint_save", "kwargs": {"path": "/x"}}
    assert "no function to train with" in faults(mode="fabric", function=function)["/function/call_path"]


@pytest.mark.parametrize("mode", ["trainer", "fabric"])
def test_processes_talk_by_a_backend_that_the_accelerator_has(mode: str) -> None:
    place = f"/{mode}/strategy/init_args/process_group_backend"
    for name, words in (
        ("nccl", "needs CUDA"),
        ("cpu:gloo,cuda:nccl", "needs CUDA"),
        ("mpi", "mpirun"),
        ("bogus", "no backend"),
        (3, "no"),
    ):
        found = faults({"strategy": strategy("DDPStrategy", mode, process_group_backend=name)}, mode)
        assert list(found) == [place]
        assert words in found[place]
    for machine, names in ((NONE, ("gloo", None)), (GPUS, ("gloo", "nccl", "NCCL", "cpu:gloo,cuda:nccl", None))):
        for taken in names:
            assert faults({"strategy": strategy("DDPStrategy", mode, process_group_backend=taken)}, mode, machine) == {}


BOX = "workers.training"
WINDOWS, TABLE = f"{BOX}.data.SeriesWindows", f"{BOX}.data.table.Table"


@pytest.mark.parametrize(
    ("model", "data", "place", "words"),
    [
        (built(f"{BOX}.models.Forecaster", horizon=2), built(TABLE), "/data/class_path", "SeriesWindows"),
        (built(f"{BOX}.models.Autoencoder"), built(TABLE), "/data/class_path", "SeriesWindows"),
        (built(f"{BOX}.models.Classifier"), built(WINDOWS, horizon=2), "/data/class_path", "Table"),
        (built(f"{BOX}.models.regressor.Regressor"), built(WINDOWS), "/data/class_path", "Table"),
        (built(f"{BOX}.models.Forecaster"), built(WINDOWS, context=4), "/data/init_args", "neither"),
        (built(f"{BOX}.models.Forecaster"), {"class_path": WINDOWS}, "/data/init_args", "neither"),
        (built(f"{BOX}.models.Forecaster", horizon=2), built(WINDOWS, horizon=3), "/data/init_args/horizon", "Say it once"),
        (built(f"{BOX}.models.Autoencoder"), built(WINDOWS, horizon=3), "/data/init_args/horizon", "Leave it out"),
        (built(f"{BOX}.models.Forecaster", horizon=2), built(WINDOWS, horizon="2"), None, ""),
        (built(f"{BOX}.models.Forecaster"), built(WINDOWS, horizon=2), None, ""),
        (built(f"{BOX}.models.Autoencoder"), built(WINDOWS), None, ""),
        (built(f"{BOX}.models.Classifier"), built(TABLE), None, ""),
        (built(f"{BOX}.models.Forecaster"), built("torch.optim.X"), None, ""),
        (MODEL, built(TABLE), None, ""),
    ],
)  # fmt: skip
def test_data_in_the_box_goes_with_a_model_in_the_box(model: Any, data: Any, place: str | None, words: str) -> None:
    found = faults(model=model, data=data)
    assert list(found) == ([place] if place else [])
    assert words in found.get(place or "", "")


def test_a_function_has_no_stages_and_needs_a_path() -> None:
    params = TrainingParams(mode="fabric", stage="predict", config={"fabric": {}, "function": {"kwarg": 1}})
    pointers = [fault.pointer for fault in check(params, NONE, DEFAULT_ALLOW).faults]
    assert pointers == ["/params/stage", "/params/config/function/kwarg", "/params/config/function"]


def test_several_faults_come_together() -> None:
    found = faults(
        {"accelerator": "cuda", "precision": "fp16", "strategy": "nope", "devices": 0, "num_nodes": 0}, ckpt_path="x"
    )
    assert sorted(found) == [
        "/ckpt_path",
        *(f"/trainer/{key}" for key in ("accelerator", "devices", "num_nodes", "precision", "strategy")),
    ]


def test_a_strategy_of_ones_own_is_bound_by_what_it_inherits_from() -> None:
    params = asked({"strategy": {"class_path": "mine.Sharded"}})
    allow = [*DEFAULT_ALLOW, "mine"]
    assert check(params, NONE, allow).faults == []
    found = check(params, NONE, allow, ("FSDPStrategy", "ParallelStrategy", "Strategy")).faults
    assert [fault.pointer for fault in found] == ["/params/config/trainer/strategy"]


KEYS = (
    "trainer", "fabric", "model", "data", "optimizer", "lr_scheduler", "function", "ckpt_path", "weights_only", "seed_everything",
    "accelerator", "devices", "num_nodes", "strategy", "precision", "plugins", "callbacks", "logger", "class_path", "call_path",
    "init_args", "kwargs", "dataset", "values", "series", "gradient_clip_val", "gradient_clip_algorithm", "data_parallel_size",
)  # fmt: skip
WORDS = (
    "auto",
    "cuda",
    "fsdp",
    "16",
    "0,1",
    "/x",
    "",
    "lightning.pytorch.strategies.ModelParallelStrategy",
    "workers.training.data.X",
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70) | st.just(1.5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8),
    st.sampled_from(["trainer", "fabric"]),
    st.sampled_from([GPUS, NONE]),
)
def test_any_json_gets_an_answer(config: dict[str, Any], mode: str, machine: Machine) -> None:
    answer = check(TrainingParams(mode=mode, config=config), machine, DEFAULT_ALLOW)
    assert (answer.resolved is None) == bool(answer.faults)
    for fault in answer.faults:
        *_, last = fault.pointer.split("/")
        assert fault.pointer == "/params/stage" or fault.pointer.startswith("/params/config")
        assert fault.detail
        assert last


# ---- the list, sources, references -----------------------------------------------------------------------------


def test_the_list_is_of_whole_segments_and_has_no_side_doors() -> None:
    assert is_allowed("torch.optim.AdamW", DEFAULT_ALLOW)
    for path in (
        "torch.optimx.AdamW",
        "torch.load",
        "lightning.pytorch.cli.instantiate_class",
        "workers.training.rank.run",
    ):
        assert not is_allowed(path, DEFAULT_ALLOW)


def test_a_source_brings_its_own_modules_and_hides_no_others(tmp_path: Any) -> None:
    for name in ("mine", "torch", "os"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "alone.py").touch()
    (tmp_path / "notes").mkdir()
    assert modules_of(tmp_path) == ["alone", "mine"]


def test_references_are_found_where_they_count_and_replaced() -> None:
    arguments = {"a/b": [{"dataset": "ds_1", "column": "c"}], "table": {"dataset": "ds_2"}, "n": {"values": [1]}}
    data = {"class_path": "x.y", "init_args": arguments}
    params = asked({}, data=data, model={"class_path": "x.y", "dataset": "ds_3"})
    found = dict(references(params))
    assert found == {
        "/config/data/init_args/a~1b/0": SeriesReference(dataset="ds_1", column="c"),
        "/config/data/init_args/table": "ds_2",
        "/config/data/init_args/n": SeriesReference(values=[1]),
    }
    replaced = with_replaced(params.config, {pointer: f"{index}.npy" for index, pointer in enumerate(found)})
    assert replaced["data"]["init_args"] == {"a/b": ["0.npy"], "table": "1.npy", "n": "2.npy"}
    assert params.config["data"] == data
    fabric = asked(mode="fabric", function={"call_path": "x.y", "kwargs": {"series": {"dataset": "ds_1", "start": 3}}})
    assert [pointer for pointer, _ in references(fabric)] == ["/config/function/kwargs/series"]


def test_what_is_a_reference() -> None:
    assert is_reference({"dataset": "x"})
    assert is_reference({"values": [1], "column": 2})
    assert not is_reference({"dataset": "x", "batch_size": 3})
    assert not is_reference({"column": 1})
    assert not is_reference("ds_1")


def test_the_table_has_a_row_for_every_mode_and_reason() -> None:
    for row in STRATEGIES.values():
        assert row.modes <= BOTH
        assert bool(row.runs_as) == bool(row.because)


# ---- capabilities and the README -------------------------------------------------------------------------------


def proved(**evidence: str) -> dict[str, Probe]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    named = {name.replace("__", "/"): each for name, each in evidence.items()}
    return {
        name: Probe(name=name, evidence=each, detail="the reason", seconds=0.1, at=at)  # type: ignore[arg-type]
        for name, each in named.items()
    }


def test_nothing_is_available_without_a_run() -> None:
    for probes in ({}, proved(training__trainer__ddp="configured", training__accelerator__cuda="importable")):
        for part in capabilities(probes).values():
            for each in part.values():
                for answer in (each,) if "available" in each else each.values():
                    assert answer["available"] is False
                    assert answer["reason"]


def test_a_run_counts_for_its_aliases_and_not_for_the_other_mode() -> None:
    known = capabilities(proved(training__trainer__ddp="executed", training__accelerator__cpu="executed"))
    strategies = known["strategies"]
    for name in ("ddp", "ddp_spawn", "ddp_notebook_find_unused_parameters_true", "DDPStrategy"):
        assert strategies[name]["trainer"] == {"available": True, "evidence": "executed", "reason": None}
        assert strategies[name]["fabric"]["available"] is False
    assert "Trainer has no strategy" in strategies["dp"]["trainer"]["reason"]
    assert known["accelerators"]["auto"]["available"]
    assert not known["accelerators"]["gpu"]["available"]


def test_what_needs_cuda_says_why_it_is_not_there() -> None:
    known = capabilities(proved(training__accelerator__cuda="absent"))
    assert known["strategies"]["fsdp"]["trainer"]["reason"] == "it needs CUDA: the reason"
    assert known["precisions"]["16-mixed"]["cuda"]["reason"] == "it needs CUDA: the reason"
    with_cuda = capabilities(proved(training__accelerator__cuda="executed", training__fabric__fsdp="executed"))
    assert with_cuda["strategies"]["FSDPStrategy"]["fabric"]["available"]
    assert with_cuda["strategies"]["deepspeed_stage_3"]["trainer"]["evidence"] == "configured"
    assert with_cuda["accelerators"]["auto"]["available"]


def test_another_precision_in_its_place_is_available_and_says_so() -> None:
    mixed = capabilities({**proved(), **_precision("bf16-mixed")})["precisions"]["16-mixed"]["cpu"]
    assert mixed["available"]
    assert mixed["reason"].endswith("it runs as bf16-mixed")


def _precision(name: str) -> dict[str, Probe]:
    probe = proved(x="executed")["x"]
    return {f"training/precision/{name}/cpu": probe}


def test_the_readme_has_a_line_for_every_name() -> None:
    table = markdown().splitlines()
    assert table[0] == "| strategy | Trainer | Fabric | runs as | needs |"
    assert "| `ddp_spawn` | yes | yes | `ddp` |  |" in table
    assert "| `deepspeed_stage_1_offload` | no | yes | itself | CUDA, the package `deepspeed` |" in table
    assert all(any(line.startswith(f"| `{name}` |") for line in table) for name in STRATEGIES)
