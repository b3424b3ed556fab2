"""What people read where no GPU function can run, or where one failed: a sentence for each case, with what to do."""

from dataclasses import replace

import pytest

from workers import hardware
from workers.cuda.driver import OBSTACLES, Facts, obstacle
from workers.cuda.environment import cuda_environment
from workers.cuda.errors import ERRORS, GpuFailed, sentence, told
from workers.cuda.job import device_id
from workers.failures import OutOfMemory, as_problem

READY = Facts(devices=1, driver=13020, device="/dev/nvidia0", numba_cuda="0.30.4", numpy="2.4.6", toolkit=13000)
NOT_FOUND = "libcuda.so.1: cannot open shared object file"

CASES = {
    "no driver": (replace(READY, missing=NOT_FOUND, device=None), "libcuda.so.1", "Use a machine with"),
    "device without a driver": (replace(READY, missing=NOT_FOUND), "/dev/nvidia0", "Install NVIDIA's driver"),
    "driver error": (replace(READY, initialised=999, devices=0), "999", "reboot"),
    "no device": (replace(READY, devices=0), "shows no device", "nvidia-smi"),
    "no numba-cuda": (replace(READY, numba_cuda=None), "numba-cuda is not installed", "pip install 'tidemill[gpu]'"),
    "numpy too new": (replace(READY, numpy="2.5.1"), "2.5.1", "pip install 'numpy<2.5'"),
    "no toolkit": (replace(READY, toolkit=0, no_toolkit="no libnvrtc"), "no libnvrtc", "numba-cuda[cu13]"),
    "driver older than the toolkit": (
        replace(READY, driver=12040),
        "12.4, the toolkit is 13.0",
        "Update NVIDIA's driver",
    ),
}


def test_every_obstacle_has_a_case_here():
    assert set(CASES) == {each.name for each in OBSTACLES}


@pytest.mark.parametrize("name", CASES)
def test_each_obstacle_says_what_it_is_and_what_to_do(name):
    facts, what, help_ = CASES[name]
    found = obstacle(facts)
    assert found is not None
    assert what in found
    assert help_ in found


def test_nothing_is_in_the_way_of_a_machine_that_has_everything():
    assert obstacle(READY) is None
    assert obstacle(replace(READY, driver=13000, toolkit=13020)) is None  # minor versions work together
    assert obstacle(replace(READY, numpy="2.10.0")) is not None


def test_the_toolkit_recommended_is_one_the_driver_knows():
    assert "numba-cuda[cu12]" in str(obstacle(replace(READY, driver=12040, toolkit=0)))
    assert "numba-cuda[cu13]" in str(obstacle(replace(READY, driver=14000, toolkit=0)))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
def test_each_error_of_a_running_job_is_told_as_a_failure_with_that_sentence(error):
    problem = as_problem(told(RuntimeError(f"[{error.number}] Call to cuLaunchKernel results in {error.name}")))
    assert problem["detail"] == sentence(error.number)
    assert problem["type"] == ("/problems/out-of-memory" if error.number == 2 else "/problems/gpu-failed")


def test_numbers_and_names_are_those_of_the_driver():
    binding = pytest.importorskip("cuda.bindings.driver", reason="the extra `gpu` is not installed")
    runtimes = {"CUDA_ERROR_INSUFFICIENT_DRIVER"}  # known to the runtime only
    for error in ERRORS:
        if error.name not in runtimes:
            assert int(getattr(binding.CUresult, error.name)) == error.number


def test_out_of_memory_is_found_behind_another_exception_and_an_unknown_error_keeps_its_name():
    outer = ValueError("could not copy")
    outer.__cause__ = RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
    assert isinstance(told(outer), OutOfMemory)
    unknown = told(RuntimeError("CUDA_ERROR_OF_NEXT_YEAR: what"))
    assert isinstance(unknown, GpuFailed)
    assert "CUDA_ERROR_OF_NEXT_YEAR" in str(unknown)
    assert "4711" in sentence(4711)


def test_what_is_not_cudas_stays_what_it_is():
    for fault in (MemoryError(), KeyError("x"), OutOfMemory("ours")):
        assert told(fault) is fault


def test_a_device_is_seen_without_its_driver(tmp_path):
    assert hardware.nvidia_device(tmp_path) is None
    for name, vendor, kind in (("0000:00:02.0", "0x8086", "0x030000"), ("0000:05:00.0", "0x10de", "0x068000")):
        card = tmp_path / "sys/bus/pci/devices" / name
        card.mkdir(parents=True)
        (card / "vendor").write_text(f"{vendor}\n")
        (card / "class").write_text(f"{kind}\n")
    assert hardware.nvidia_device(tmp_path) is None  # another maker's GPU, and a bridge of NVIDIA's
    gpu = tmp_path / "sys/bus/pci/devices/0000:06:00.0"
    gpu.mkdir()
    (gpu / "vendor").write_text("0x10de\n")
    (gpu / "class").write_text("0x030200\n")
    assert hardware.nvidia_device(tmp_path) == "PCI 0000:06:00.0"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    assert hardware.nvidia_device(tmp_path) == f"{tmp_path}/dev/nvidia0"


def test_a_job_sees_its_devices_alone_whatever_the_worker_itself_may_see(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cuda_environment([1, 3], "/x")["CUDA_VISIBLE_DEVICES"] == "1,3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4, GPU-7a,2,-1,5")
    assert hardware.visible_devices() == ["4", "GPU-7a", "2"]
    assert cuda_environment([0, 1], "/x")["CUDA_VISIBLE_DEVICES"] == "4,GPU-7a"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert hardware.visible_devices() == []


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("windows", [1, 2, 3, 8, 9, 12, 13, 63, 64, 100, 255, 256, 257])
def test_stumpy_gets_no_more_devices_than_it_makes_stretches_for(devices, windows):
    chosen = device_id(range(devices), windows)
    count = 1 if isinstance(chosen, int) else len(chosen)
    step = 1 + windows // count  # as gpu_stump and gpu_aamp cut it
    assert len(range(0, windows, step)) == count
    assert count <= devices
