"""A warm parent has few threads, and what it forks computes at once and computes right."""

import json
import os
import subprocess
import sys

import pytest

from workers.environment import compute_environment

PARENT = """
import json, os, time
from workers.matrix_profile import warm
warm.warm()
threads = len(os.listdir("/proc/self/task"))
import numpy as np
from workers.matrix_profile.run import run
from workers.reporting import Silent
values = np.random.default_rng(0).standard_normal(2000).cumsum().tolist()
def child(folder):
    started, (reads, writes) = time.perf_counter(), os.pipe()
    if not (pid := os.fork()):
        os.mkdir(folder)
        task = {"params": {"window": 100}, "sources": {"series": {"name": "walk", "values": values}}, "folder": folder}
        warm.known_answer()
        os.write(writes, json.dumps(run(task, Silent())).encode())
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return {"status": status, "seconds": time.perf_counter() - started, **json.loads(os.read(reads, 65536))}
print(json.dumps({"threads": threads, "children": [child("one"), child("two")]}))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_of_a_warm_parent(warm, tmp_path, threads):
    environment = os.environ | compute_environment(threads) | {"PYTHONPATH": os.getcwd()}
    parent = subprocess.run(
        [sys.executable, "-W", "error", "-c", PARENT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert parent.returncode == 0, parent.stderr
    said = json.loads(parent.stdout)

    assert said["threads"] <= 1 + threads  # Numba's own, idle
    for child in said["children"]:
        assert child["status"] == 0
        assert child["provenance"]["threads"] == threads
        assert child["summary"]["verification"]["max_abs_difference"] < 1e-9
        assert child["summary"]["verification"]["rows_recomputed"] == 0
        assert child["seconds"] < 1.0  # 0.05 on an idle machine


def test_speed_is_measured(warm):
    from workers.matrix_profile.warm import measure

    assert measure(length=512) > 1e5
