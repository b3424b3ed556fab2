"""The probe on a bare machine: what it says is what it did."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.processes import words
from workers import hardware, probe
from workers.probes import clusters


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workers.probe", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def found(*arguments: str, **environment: str) -> dict[str, dict]:
    done = run(*arguments, "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in json.loads(done.stdout)}


def test_cpu_dask_ray_and_training_are_executed_here():
    probes = found()
    assert set(probes) >= {"cpu", "dask", "ray", "cuda", "training", "training/trainer/ddp", "training/fabric/ddp"}
    assert {name: probes[name]["evidence"] for name in ("cpu", "dask", "ray", "training")} == {
        "cpu": "executed",
        "dask": "executed",
        "ray": "executed",
        "training": "executed",
    }
    assert all(line["detail"] and line["at"].endswith("Z") for line in probes.values())


def test_the_ray_probe_leaves_neither_processes_nor_files():
    assert list(found("--check", "ray")) == ["ray"]
    mark = f"{os.sep}{clusters.RAY_FOLDER}"
    assert [p.pid for p in psutil.process_iter() if any(mark in word for word in words(p))] == []
    assert list(Path("/tmp").glob(f"{clusters.RAY_FOLDER}*")) == []


@pytest.mark.skipif(bool(hardware.gpus()), reason="this machine has a GPU")
def test_a_machine_without_cuda_cannot_meet_require_cuda_and_says_why():
    done = run("--check", "dask", "--require-cuda")
    assert done.returncode == 3
    assert re.search(r"dask +executed", done.stdout)
    assert re.search(r"cuda +absent", done.stdout)
    assert "libcuda" in done.stdout


@pytest.mark.skipif(bool(hardware.gpus()), reason="this machine has a GPU")
def test_the_simulator_is_evidence_of_its_own_kind_and_meets_no_requirement():
    simulated = found("--check", "cuda", TIDEMILL_CUDA_SIMULATOR="true")["cuda"]
    assert simulated["evidence"] == "simulated"
    assert "not on a GPU" in simulated["detail"]
    assert "libcuda" in simulated["detail"]
    assert run("--check", "cuda", "--require-cuda", TIDEMILL_CUDA_SIMULATOR="true").returncode == 3


def test_a_check_that_fails_proves_nothing_and_keeps_its_reason():
    def fails() -> probe.Finding:
        raise ArithmeticError("stump gave [1.0], and the truth is [0.0]")

    broken = probe.probed("cpu", fails)
    assert broken.evidence == "absent"
    assert "the truth is [0.0]" in broken.detail


def test_a_cluster_that_computes_wrongly_is_not_executed():
    assert clusters.judged("Dask", 42)[0] == "executed"
    with pytest.raises(ArithmeticError, match="20 \\+ 22 = 41"):
        clusters.judged("Ray", 41)
