"""What a worker says its machine is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers import hardware

COMPILER = shutil.which("cc")


def test_hardware_is_read_from_the_machine():
    cpu = hardware.cpu()
    assert cpu["cores"] >= 1
    assert cpu["model"]
    assert hardware.memory_bytes() > 1 << 28
    assert {"python", "tidemill", "numpy", "numba", "stumpy", "dask"} <= set(hardware.versions())


@pytest.fixture(scope="module")
def management(tmp_path_factory) -> str:
    """The folder of a management library of three GPUs."""
    if COMPILER is None:
        pytest.skip("no C compiler here to make a management library with")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    return str(folder)


def gpus(management: str, visible: str | None = None) -> list[dict]:
    environment = {**os.environ, "LD_LIBRARY_PATH": management}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    code = "import json; from workers import hardware; print(json.dumps(hardware.gpus()))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_gpus_are_told_with_what_they_know_of_themselves(management):
    first, second, third = gpus(management)
    assert first == {
        "index": 0,
        "uuid": "GPU-0",
        "name": "Card 0",
        "memory_bytes": 16 << 30,
        "free_bytes": 4 << 30,
        "compute_capability": "9.0",
        "driver": "580.1",
    }
    assert (second["name"], second["memory_bytes"]) == ("Card 1", None)
    assert third["index"] == 2


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [("2,0", ["GPU-2", "GPU-0"]), ("GPU-1", ["GPU-1"]), ("1,9,0", ["GPU-1"]), ("0,-1,2", ["GPU-0"]), ("", [])],
)
def test_those_that_cuda_would_not_show_are_not_counted(management, visible, uuids):
    found = gpus(management, visible)
    assert [gpu["uuid"] for gpu in found] == uuids
    assert [gpu["index"] for gpu in found] == list(range(len(uuids)))


@pytest.mark.skipif(bool(hardware.gpus()), reason="this machine has a GPU")
def test_a_machine_without_a_driver_has_no_gpus_and_that_is_no_error():
    assert hardware.gpus() == []
