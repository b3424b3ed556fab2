"""The probe on a bare machine: what it says is what it did."""

import json
import subprocess
import sys

import pytest

from workers import hardware, probe


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workers.probe", *arguments], capture_output=True, text=True, timeout=100, check=False
    )


def test_cpu_and_dask_are_executed_here():
    done = run("--json")
    assert done.returncode == 0, done.stderr
    found = {line["name"]: line for line in json.loads(done.stdout)}
    assert [found[name]["evidence"] for name in ("cpu", "dask")] == ["executed", "executed"]
    assert all(line["detail"] and line["at"].endswith("Z") for line in found.values())


@pytest.mark.skipif(bool(hardware.gpus()), reason="this machine has a GPU")
def test_a_machine_without_cuda_cannot_meet_require_cuda_and_says_why():
    done = run("--check", "cuda", "--require-cuda")
    assert done.returncode == 3
    assert "absent" in done.stdout
    assert "libcuda" in done.stdout


def test_a_check_that_fails_proves_nothing_and_keeps_its_reason():
    def fails() -> probe.Finding:
        raise ArithmeticError("stump gave [1.0], and the truth is [0.0]")

    found = probe.probed("cpu", fails)
    assert found.evidence == "absent"
    assert "the truth is [0.0]" in found.detail


def test_hardware_is_read_from_the_machine():
    cpu = hardware.cpu()
    assert cpu["cores"] >= 1
    assert cpu["model"]
    assert hardware.memory_bytes() > 1 << 28
    assert {"python", "numpy", "numba", "stumpy", "dask"} <= set(hardware.versions())
