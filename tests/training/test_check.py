"""The check before a job is queued: the command, and the full check asked of a worker."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.house import eventually
from tests.training.reading import DATA, MODEL, PL, Reader, callback, reader
from workers.host import RECIPES, TRAINING, Host, Recipe
from workers.nursery_client import NurseryGone
from workers.probes.training import training_probes
from workers.training import check
from workers.training.rules import DEFAULT_ALLOW

__all__ = ["reader"]


def command(*flags: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = check.main(flags)
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_command_says_what_would_run(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.hardware.gpus", list)
    code, out, err = command("--devices", "2", "--strategy", "ddp_spawn", "--precision", "16", capsys=capsys)
    assert code == 0
    assert '"strategy":"ddp"' in out
    assert '"precision":"bf16-mixed"' in out
    assert "ddp_spawn" in err
    code, out, err = command("--mode", "fabric", "--num-nodes", "40", capsys=capsys)
    assert (code, '"world_size":40' in out, err) == (0, True, "")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--strategy", "fsdp"), "strategy: 'fsdp' needs CUDA"),
        (("--accelerator", "cuda"), "accelerator: 'cuda' was asked for, but this machine has no CUDA device"),
        (("--devices", "0,1", "--accelerator", "cpu"), "devices: a list names GPUs"),
        (("--num-nodes", "two"), "num_nodes: must be a whole number"),
        (("--strategy", f'{{"class_path": "{PL}.strategies.FSDPStrategy"}}'), "FSDPStrategy"),
        (("--mode", "fabric", "--strategy", "single_device"), "Fabric has no strategy"),
    ],
)
def test_the_command_refuses_with_the_reason(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, flags: Any, words: str
) -> None:
    monkeypatch.setattr("workers.hardware.gpus", list)
    code, out, err = command(*flags, capsys=capsys)
    assert (code, out) == (2, "")
    assert words in err


def test_the_command_needs_no_torch() -> None:
    script = "import sys; from workers.training.check import main; code = main([]); assert 'torch' not in sys.modules; sys.exit(code)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def on_worker(
    source: str | None = None, mode: str = "trainer", allow: Any = DEFAULT_ALLOW, **config: Any
) -> dict[str, str]:
    whole = {"model": MODEL, "data": DATA} if mode == "trainer" else {}
    answer = check.on_worker({"mode": mode, "config": {**whole, **config}}, list(allow), source)
    return {fault["pointer"].removeprefix("/params/config"): fault["detail"] for fault in answer["faults"]}


def test_a_whole_configuration_is_taken_and_references_are_not_opened(reader: Reader) -> None:
    assert on_worker(trainer={"devices": 2, "strategy": "ddp", "logger": True, "enable_progress_bar": True}) == {}
    data = {
        "class_path": "workers.training.data.SeriesWindows",
        "init_args": {"series": {"dataset": "ds_1", "column": 0}, "context": 8},
    }
    model = {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 2}}
    assert on_worker(data=data, model=model) == {}
    missing = on_worker(data={**data, "init_args": {"series": {"dataset": "ds_1"}}}, model=model)
    assert "`context` is missing" in missing["/data/init_args"]


@pytest.mark.parametrize(
    ("trainer", "place"),
    [
        ({"limit_train_batches": 1.5}, "/trainer/limit_train_batches"),
        ({"fast_dev_run": -1}, "/trainer/fast_dev_run"),
        ({"profiler": "stopwatch"}, "/trainer/profiler"),
        ({"callbacks": [callback("ModelCheckpoint", save_top_k=3)]}, "/trainer/callbacks"),
        ({"logger": {"class_path": f"{PL}.loggers.WandbLogger", "init_args": {"offline": True}}}, "/trainer/logger"),
    ],
)
def test_what_trainer_itself_objects_to_is_told(reader: Reader, trainer: Any, place: str) -> None:
    found = on_worker(trainer=trainer)
    assert len(found) == 1
    assert next(iter(found)) in (place, "/trainer")


def test_a_module_that_fails_hangs_or_ends_its_process_is_told_as_that(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "broken": "import no_such_package_at_all",
        "leaving": "import sys; sys.exit(3)",
        "dying": "import os; os._exit(3)",
        "hanging": "import time; time.sleep(600)",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    expected = {
        "broken": "no_such_package_at_all",
        "leaving": "ends the process",
        "dying": "ended the process",
        "hanging": "longer than",
    }
    for name, words in expected.items():
        monkeypatch.setattr(check, "CHILD_SECONDS", 1.0 if name == "hanging" else 60.0)
        found = on_worker(str(tmp_path), model={"class_path": f"{name}.Net"})
        assert len(found) == 1
        assert words in next(iter(found.values()))


def test_a_source_that_kills_the_process_which_all_checks_come_from_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nursery is one that has loaded nothing, and the modules' deeds are errands."""
    monkeypatch.setitem(RECIPES, TRAINING, Recipe("tests.training.errands:warm_nothing", "nothing", {}))
    host = Host({}, devices=())
    monkeypatch.setattr(check, "current_host", lambda: host)
    monkeypatch.setattr(check, "IN_CHILD", "tests.training.errands:kill_the_nursery")
    try:
        for source, pointer in (("package", "/params/source"), (None, "/params/config")):
            (fault,) = check.on_worker({}, [], source)["faults"]
            assert fault["pointer"] == pointer
            assert "ended the process that checks it" in fault["detail"]
        monkeypatch.setattr(check, "IN_CHILD", "tests.training.errands:answer_wrongly")
        (fault,) = check.on_worker({}, [], None)["faults"]
        assert "expected" in fault["detail"]
    finally:
        host.close()
    with pytest.raises(NurseryGone):
        check.on_worker({}, [], None)


def test_a_worker_that_leaves_says_nothing_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, TRAINING, Recipe("tests.training.errands:warm_nothing", "nothing", {}))
    host = Host({}, devices=())
    monkeypatch.setattr(check, "current_host", lambda: host)
    monkeypatch.setattr(check, "IN_CHILD", "tests.training.errands:sleep_for_long")
    nursery = host.nursery_for(TRAINING)
    leaving = threading.Thread(target=lambda: (eventually(lambda: nursery._pieces), host.close()))
    leaving.start()
    with pytest.raises(NurseryGone):
        check.on_worker({}, [], "package")
    leaving.join()


def test_a_book_that_a_module_raises_is_cut_short(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("raise ImportError('x' * 100_000)")
    (detail,) = on_worker(str(tmp_path), model={"class_path": "long.Net"}).values()
    assert len(detail) == 2000


def test_a_strategy_of_ones_own_obeys_the_rules_of_its_kind(reader: Reader, tmp_path: Path) -> None:
    text = f"from {PL}.strategies import DDPStrategy, FSDPStrategy\nclass Ours(DDPStrategy): ...\nclass Sharded(FSDPStrategy): ...\n"
    (tmp_path / "mine.py").write_text(text)
    assert on_worker(str(tmp_path), trainer={"devices": 2, "strategy": {"class_path": "mine.Ours"}}) == {}
    found = on_worker(str(tmp_path), trainer={"accelerator": "cpu", "strategy": {"class_path": "mine.Sharded"}})
    assert "needs CUDA" in found["/trainer/strategy"]
    assert on_worker(str(tmp_path), trainer={"accelerator": "cuda", "strategy": {"class_path": "mine.Sharded"}}) == {}


def test_nothing_is_left_behind(reader: Reader) -> None:
    before = set(os.listdir())
    on_worker(trainer={"logger": {"class_path": f"{PL}.loggers.CSVLogger", "init_args": {"save_dir": "out"}}})
    assert set(os.listdir()) == before


def test_the_probes_prove_what_this_worker_can_train(reader: Reader) -> None:
    probes = {probe.name: probe for probe in training_probes(reader.host)}
    for name in ("training", "training/accelerator/cpu", "training/precision/bf16-mixed/cpu"):
        assert probes[name].evidence == "executed"
    for mode in ("trainer", "fabric"):
        for strategy in ("single_device", "ddp", "ModelParallelStrategy"):
            assert probes[f"training/{mode}/{strategy}"].evidence == "executed", probes[f"training/{mode}/{strategy}"]
    if probes["training/accelerator/cuda"].evidence != "executed":
        assert "CUDA" in probes["training/accelerator/cuda"].detail
        assert "training/trainer/fsdp" not in probes
