"""Configurations as a rank reads them: what is wrong has its place, nothing that is not allowed is imported, and no text is a file."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.reading import BORING, DATA, MODEL, PL, Reader, callback, reader
from workers.contract import TrainingParams
from workers.training.rules import DEFAULT_ALLOW, Machine, check

__all__ = ["reader"]

WHOLE = {"model": MODEL, "data": DATA}
SOURCE = """
from collections.abc import Callable
from dataclasses import dataclass

import lightning.pytorch as pl
import torch
from lightning.fabric import Fabric
from lightning.pytorch.cli import OptimizerCallable
from lightning.pytorch.demos.boring_classes import BoringModel

class Net(BoringModel):
    def __init__(self, layers: list[int], act: torch.nn.Module | None = None, act_path: str = "", **kwargs):
        super().__init__()

class Bare(pl.LightningModule): ...

def train(fabric: Fabric, epochs: int, rate: float = 0.1):
    return {"epochs": epochs, "rate": rate, "device": str(fabric.device)}

def open_handed(fabric, **kwargs):
    return kwargs

def no_fabric(): ...

class Act(torch.nn.ReLU): ...

@dataclass
class Setting:
    width: int = 1

class Wide(BoringModel):
    def __init__(self, setting: Setting, other: Setting | None = None, loss: Callable = torch.nn.functional.mse_loss,
                 optimizer: OptimizerCallable = torch.optim.SGD):
        super().__init__()
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "mine.py").write_text(SOURCE)
    return str(folder)


def mine(name: str, **arguments: Any) -> dict[str, Any]:
    return {"class_path": f"mine.{name}", "init_args": arguments}


WRONG: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"trainer": {"max_epochs": "three"}}, {"/trainer/max_epochs": "a whole number or null, not 'three'"}),
    ({"trainer": {"max_epochz": 1}}, {"/trainer/max_epochz": "no argument"}),
    ({"trainer": {"limit_train_batches": "some", "profiler": 3}},
     {"/trainer/limit_train_batches": "a number", "/trainer/profiler": "text or null"}),
    ({"trainer": {"callbacks": [callback("EarlyStopping")]}}, {"/trainer/callbacks/0/init_args": "`monitor` is missing"}),
    ({"trainer": {"callbacks": [callback("Timer"), callback("EarlyStopping", monitor="x", patience="q")]}},
     {"/trainer/callbacks/1/init_args/patience": "a whole number, not 'q'"}),
    ({"trainer": {"callbacks": callback("ModelCheckpoint", every=3)}}, {"/trainer/callbacks/init_args/every": "no argument"}),
    ({"trainer": {"callbacks": [callback("Nothing")]}}, {"/trainer/callbacks/0/class_path": "no attribute 'Nothing'"}),
    ({"trainer": {"logger": callback("Timer")}}, {"/trainer/logger": "no Logger"}),
    ({"trainer": {"strategy": {"class_path": f"{PL}.strategies.DDPStrategy", "init_args": {"timeout": "soon"}}}},
     {"/trainer/strategy/init_args/timeout": 'of the form "h:m:s"'}),
    ({"trainer": {"strategy": {"class_path": f"{PL}.strategies.FSDPStrategy", "init_args": {"sharding_strategy": "SOME"}}}},
     {"/trainer/strategy/init_args/sharding_strategy": "'FULL_SHARD'"}),
    ({"model": {"class_path": f"{BORING}.DemoModel", "init_args": {"out_dim": 1.5, "rate": 1}}},
     {"/model/init_args/out_dim": "a whole number, not 1.5", "/model/init_args/rate": "no argument"}),
    ({"model": DATA}, {"/model/class_path": "no LightningModule"}),
    ({"trainer": {"logger": [{"class_path": "MLFlowLogger"}]}}, {"/trainer/logger/0": "needs the package 'mlflow'"}),
    ({"trainer": {"callbacks": [{"class_path": f"{PL}.callbacks.timer.log"}]}},
     {"/trainer/callbacks/0/class_path": "no class or function, but a value of type Logger"}),
    ({"model": {"class_path": f"{PL}.demos.boring_classes.torch"}}, {"/model/class_path": "but a value of type module"}),
    ({"data": MODEL}, {"/data/class_path": "LightningDataModule"}),
    ({"optimizer": {"class_path": "torch.optim.SGD", "init_args": {"lr": "fast"}}}, {"/optimizer/init_args/lr": "a number"}),
    ({"optimizer": {"class_path": f"{PL}.callbacks.Timer"}}, {"/optimizer/class_path": "Optimizer"}),
    ({"optimizer": {"class_path": "torch.optim.SGD"}, "lr_scheduler": {"class_path": "torch.optim.lr_scheduler.StepLR"}},
     {"/lr_scheduler/init_args": "`step_size` is missing"}),
    ({"optimizer": {"class_path": "torch.optim.SGD"}, "lr_scheduler": {"class_path": "torch.optim.lr_scheduler.ReduceLROnPlateau"}},
     {"/lr_scheduler/class_path": f"{PL}.cli.ReduceLROnPlateau"}),
    ({"model": {"class_path": "pytorch_lightning.demos.boring_classes.BoringModel"}},
     {"/data/class_path": "name 'pytorch_lightning.demos.boring_classes.BoringDataModule'"}),
    ({"trainer": {"max_epochs": "x", "callbacks": [callback("EarlyStopping", mode=3)]}, "data": MODEL},
     {"/trainer/max_epochs": "", "/trainer/callbacks/0/init_args/mode": "text", "/data/class_path": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), WRONG)
def test_what_is_wrong_has_its_place(reader: Reader, config: dict[str, Any], expected: dict[str, str]) -> None:
    found = reader.faults(config={**WHOLE, **config})
    assert set(expected) <= set(found)
    assert set(found) - set(expected) <= {"/trainer/callbacks/0/init_args"}  # `monitor`, where that is not the point
    for place, words in expected.items():
        assert words in found[place]


RIGHT: list[dict[str, Any]] = [
    {},
    {"trainer": {"max_epochs": "3", "limit_train_batches": 0.5, "max_time": "00:01:00:00", "profiler": "simple", "precision": "16"}},
    {"trainer": {"callbacks": [{"class_path": "EarlyStopping", "init_args": {"monitor": "x"}}], "logger": {"class_path": "CSVLogger",
     "init_args": {"save_dir": "out"}}}},
    {"trainer": {"strategy": {"class_path": "DDPStrategy", "init_args": {"timeout": "0:05:00", "static_graph": True}}}},
    {"trainer": {"plugins": [{"class_path": f"{PL}.plugins.MixedPrecision", "init_args": {"precision": "bf16-mixed", "device": "cpu"}}]}},
    {"optimizer": {"class_path": "AdamW", "init_args": {"lr": 1e-3, "betas": [0.9, 0.99]}},
     "lr_scheduler": {"class_path": "ReduceLROnPlateau", "init_args": {"monitor": "x"}}},
    {"optimizer": {"class_path": "torch.optim.SGD"}, "lr_scheduler": {"class_path": "StepLR", "init_args": {"step_size": 1}}},
    {"model": {"class_path": f"{BORING}.DemoModel", "init_args": {"out_dim": 3}}, "seed_everything": 7},
]  # fmt: skip


def test_a_configuration_is_taken_or_refused_as_the_command_line_does(reader: Reader) -> None:
    right = [{**WHOLE, **config} for config in RIGHT]
    for config in right:
        assert reader.faults(config=config) == {}
        assert check(TrainingParams(config=config), Machine(), DEFAULT_ALLOW).faults == []
    # Torch's own ReduceLROnPlateau it takes, and Trainer then fails for want of a metric to watch.
    wrong = [{**WHOLE, **config} for config, _ in WRONG if "ReduceLROnPlateau" not in str(config)]
    objections = reader.call("command_line_says", [*right, *wrong])
    assert [each is None for each in objections] == [True] * len(right) + [False] * len(wrong)


def test_a_stage_needs_its_methods(reader: Reader, source: str) -> None:
    bare = reader.faults(source, config={"model": mine("Bare")})
    assert list(bare) == ["/model/class_path", ""]
    assert "configure_optimizers" in bare["/model/class_path"]
    assert "`data` is missing" in bare[""]
    demo = {"class_path": f"{BORING}.DemoModel"}
    assert (
        "`validation_step`"
        in reader.faults(stage="validate", config={"model": demo, "data": DATA})["/model/class_path"]
    )
    assert reader.faults(stage="predict", config={"model": demo, "data": DATA}) == {}


def test_arguments_within_arguments_have_their_places(reader: Reader, source: str) -> None:
    def found(**arguments: Any) -> dict[str, str]:
        return reader.faults(source, config={"model": mine("Wide", **arguments), "data": DATA})

    assert found(setting={"width": 3}, other={}) == {}
    assert found(setting={"width": "x"}) == {"/model/init_args/setting/width": "must be a whole number, not 'x'"}
    assert found(setting={}, other={"width": "x"}) == {
        "/model/init_args/other/width": "must be a whole number, not 'x'"
    }
    assert "/model/init_args/other/depth" in found(setting={}, other={"depth": 1})
    assert found(settings={})["/model/init_args/settings"].endswith("perhaps 'setting' is meant")
    adam = {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.1}}
    assert found(setting={}, optimizer=adam) == {}
    wrong = found(setting={}, optimizer={**adam, "init_args": {"rate": 0.1}}, loss="torch.nn.functional.l1_loss")
    assert sorted(wrong) == ["/model/init_args/loss", "/model/init_args/optimizer/init_args/rate"]


def test_nothing_off_the_list_is_imported(reader: Reader, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Bad: ...\ndef bad(*_): ...\n")
    spec = {"class_path": "evil.Bad"}
    strategy = {"class_path": f"{PL}.strategies.FSDPStrategy", "init_args": {"auto_wrap_policy": ["evil.Bad"]}}
    for config in (
        {**WHOLE, "model": spec},
        {**WHOLE, "data": spec},
        {**WHOLE, "optimizer": spec},
        {**WHOLE, "trainer": {"callbacks": [spec]}},
        {**WHOLE, "trainer": {"callbacks": [callback("LambdaCallback", on_fit_start="evil.bad")]}},
        {**WHOLE, "trainer": {"callbacks": [callback("EarlyStopping", monitor=spec)]}},
        {**WHOLE, "trainer": {"strategy": strategy}},
        {**WHOLE, "trainer": {"plugins": [spec], "logger": "evil.Bad", "profiler": spec}},
    ):
        sent = {"config": config}
        answer = reader.call("imports", sent, list(DEFAULT_ALLOW), str(tmp_path), "evil")
        assert (answer["imported"], mark.exists()) == (False, False), config
        assert answer["faults"], config


def test_no_name_leads_around_the_list(reader: Reader) -> None:
    for path in (
        f"{PL}.callbacks.model_checkpoint.os.system",
        "torch.optim.adamw.torch.load",
        "workers.training.models.torch.nn.ReLU",
    ):
        found = reader.faults(config={**WHOLE, "model": {"class_path": path}})
        assert "not on the list" in found["/model/class_path"] or "cannot be imported" in found["/model/class_path"]


def test_no_text_is_read_as_a_file(reader: Reader, source: str, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.yaml"
    hidden.write_text("class_path: mine.Act\n")
    for text in (str(hidden), f"file://{hidden}", "https://localhost/x.yaml", "hidden.yaml"):
        found = reader.faults(source, config={"model": mine("Net", layers=[1], act=text), "data": DATA})
        assert list(found) == ["/model/init_args/act"]
        assert "mine.Act" not in found["/model/init_args/act"]
        numbers = reader.faults(source, config={"model": mine("Net", layers=text), "data": DATA})
        assert list(numbers) == ["/model/init_args/layers"]
        kept = reader.faults(source, config={"model": mine("Net", layers=[1], act_path=text), "data": DATA})
        assert kept == {}


def test_what_was_read_is_built_and_trains(reader: Reader, source: str) -> None:
    config = {
        "trainer": {"max_epochs": 1, "callbacks": [callback("TQDMProgressBar"), callback("Timer")], "logger": True},
        "model": mine("Net", layers=[1, 2], act=mine("Act")),
        "data": DATA,
        "optimizer": {"class_path": "torch.optim.AdamW", "init_args": {"lr": 0.25}},
        "lr_scheduler": {"class_path": "torch.optim.lr_scheduler.StepLR", "init_args": {"step_size": 3}},
    }
    built = reader.call("built", {"config": config}, list(DEFAULT_ALLOW), source)
    assert built["trainer"] == "lightning.pytorch.trainer.trainer"
    assert built["callbacks"] == ["Timer", "Callback"]
    assert built["loggers"] == ["CSVLogger"]
    assert (built["optimizer"], built["lr"], built["scheduler"], built["steps"]) == ("AdamW", 0.25, ["StepLR"], 1)
    plain = built["plain"]
    act = {"class_path": "mine.Act", "init_args": {"inplace": False}}
    assert plain["model"] == {"class_path": "mine.Net", "init_args": {"layers": [1, 2], "act": act, "act_path": ""}}
    assert plain["trainer"]["accumulate_grad_batches"] == 1


def test_a_model_of_the_other_package_has_its_own_trainer(reader: Reader) -> None:
    model, data = (
        {"class_path": f"pytorch_lightning.demos.boring_classes.{name}"} for name in ("BoringModel", "BoringDataModule")
    )
    config = {"trainer": {"max_epochs": 1}, "model": model, "data": data}
    built = reader.call("built", {"config": config}, list(DEFAULT_ALLOW), None)
    assert built["trainer"] == "pytorch_lightning.trainer.trainer"


def test_a_function_is_checked_by_its_signature_and_called(reader: Reader, source: str) -> None:
    def function(name: str, **kwargs: Any) -> dict[str, Any]:
        return {
            "mode": "fabric",
            "config": {"fabric": {"devices": 1}, "function": {"call_path": f"mine.{name}", "kwargs": kwargs}},
        }

    assert "`epochs` is missing" in reader.faults(source, **function("train"))["/function/kwargs"]
    wrong = reader.faults(source, **function("train", epochs="x", epoch=1))
    assert set(wrong) == {"/function/kwargs/epochs", "/function/kwargs/epoch"}
    assert "first parameter" in reader.faults(source, **function("no_fabric"))["/function/call_path"]
    assert "must name a function" in reader.faults(source, **function("Net"))["/function/call_path"]
    assert "cannot be imported" in reader.faults(source, **function("nothing"))["/function/call_path"]
    answer = reader.call("called", function("train", epochs=3), list(DEFAULT_ALLOW), source)
    assert answer["value"] == {"epochs": 3, "rate": 0.1, "device": "cpu"}
    assert answer["plain"]["function"] == {"call_path": "mine.train", "kwargs": {"epochs": 3, "rate": 0.1}}
    taken = reader.call("called", function("open_handed", anything=[1]), list(DEFAULT_ALLOW), source)
    assert taken["value"] == {"anything": [1]}


def test_the_nursery_itself_stays_as_it_was(reader: Reader) -> None:
    reader.faults(config=WHOLE)
    assert reader.call("settings_of_the_nursery") is False
