"""A warm parent has few threads, and what it forks computes at once and computes right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers import matrix_profile
from workers.environment import compute_environment

HOME = Path(matrix_profile.__file__).parent
OURS = [
    f"workers.matrix_profile.{path.relative_to(HOME).with_suffix('').as_posix().replace('/', '.')}"
    for path in HOME.rglob("*.py")
    if "njit" in path.read_text()
]
"""Our modules with compiled code."""

PARENT = """
import json, os, sys, time
from workers.matrix_profile import known, warm
import numpy as np
from workers.matrix_profile.run import run
from workers.reporting import Silent
if sys.argv[1:]:
    os.mkdir("before")
    small = {"params": {"window": 8}, "sources": {"series": [{"name": "one", "values": warm.ONE}]}, "folder": "before"}
    run(small, Silent())
else:
    warm.warm()
until = time.monotonic() + 5
while (threads := len(os.listdir("/proc/self/task"))) > 1 + int(os.environ["NUMBA_NUM_THREADS"]):
    if time.monotonic() > until: break
    time.sleep(0.01)  # a thread that was joined is still on its way out of the kernel
values = np.random.default_rng(0).standard_normal(2000).cumsum().tolist()
def child(folder):
    started, (reads, writes) = time.perf_counter(), os.pipe()
    if not (pid := os.fork()):
        os.mkdir(folder)
        task = {"params": {"window": 100}, "sources": {"series": [{"name": "walk", "values": values}]}, "folder": folder}
        if not sys.argv[1:]:
            known.answers(in_pieces=False)
        os.write(writes, json.dumps(run(task, Silent())).encode())
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return {"status": status, "seconds": time.perf_counter() - started, **json.loads(os.read(reads, 65536))}
print(json.dumps({"threads": threads, "children": [child("one"), child("two")]}))
"""


# The suite's folder of compiled code is that of one thread; for two, no more is compiled than the children then run.
@pytest.mark.parametrize(("threads", "some"), [(1, []), (2, ["some"])])
def test_a_child_of_a_warm_parent(warm, tmp_path, threads, some):
    environment = os.environ | compute_environment(threads) | {"PYTHONPATH": os.getcwd()}
    parent = subprocess.run(
        [sys.executable, "-W", "error", "-c", PARENT, *some],
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


def test_a_warm_process_compiles_nothing_more(warm, compute, spread, monkeypatch):
    """Whatever job comes first finds its kernels ready."""
    import importlib

    import numpy as np
    from stumpy import cache

    def compiled() -> dict[str, int]:
        kernels = [
            getattr(importlib.import_module(f"stumpy.{module}"), name) for module, name in cache.get_njit_funcs()
        ]
        for name in OURS:
            module = importlib.import_module(name)
            kernels += [
                each for each in vars(module).values() if hasattr(each, "py_func") and hasattr(each, "signatures")
            ]
        return {f"{each.py_func.__module__}.{each.py_func.__name__}": len(each.signatures) for each in kernels}

    a, b = np.random.default_rng(1).standard_normal((2, 80)).cumsum(axis=1)
    a[20] = np.nan
    before = compiled()
    assert len([name for name in before if name.startswith("workers.matrix_profile.tiles")]) > 10
    for distance in ({}, {"normalize": False}):
        told = {"plan": {"implementation": "tiles"}, **distance}
        compute("matrix_profile", {"series": [a]}, window=10, **told)
        compute("matrix_profile", {"series": [a], "against": [b]}, window=10, **told)
        compute("mpdist", {"a": [a], "b": [b]}, window=10, **told)
        compute("consensus_motif", {"series": [a, b, a + b]}, window=10, **told)
        compute("pan_profile", {"series": [a]}, min_window=8, max_window=9, **told)
    for plan in ({}, spread):
        for distance in ({}, {"normalize": False}, {"normalize": False, "p": 1.5}):
            told = {"plan": plan, **distance}
            for k in (1, 3):
                compute("matrix_profile", {"series": [a]}, window=10, k=k, **told)
                compute("matrix_profile", {"series": [a], "against": [b]}, window=10, k=k, **told)
            for order in ({}, {"include": [1]}, {"discords": True}):
                compute("multidimensional_profile", {"series": [a, b]}, window=10, **order, **told)
            compute("mpdist", {"a": [a], "b": [b]}, window=10, **told)
            compute("consensus_motif", {"series": [a, b, a + b]}, window=10, **told)
            compute("pan_profile", {"series": [a]}, min_window=8, max_window=9, **told)
    for pre in (False, True):
        for distance in ({}, {"normalize": False}):
            compute(
                "pan_profile", {"series": [a]}, min_window=8, max_window=9, percentage=0.5, pre_scrump=pre, **distance
            )
    assert compiled() == before


def test_speed_is_measured(warm):
    from workers.matrix_profile.warm import measure
    from workers.operations import OPERATIONS

    speed = measure()
    measured = [each for operation in OPERATIONS.values() for each in (operation, operation.tiles) if each]
    kernels = {name for each in measured for name in (each.kernels.normalised, each.kernels.p_norm)}
    assert set(speed) == {f"{name}_cells_per_second" for name in kernels}
    assert all(value > 1e5 for value in speed.values())


@pytest.mark.parametrize("in_pieces", [False, True])
def test_the_documented_answers_are_given_and_others_are_noticed(warm, monkeypatch, in_pieces):
    import stumpy

    from workers.matrix_profile import known

    names = known.answers(in_pieces=in_pieces)
    assert names == [pair[in_pieces] for pair in known.CASES] + ([] if in_pieces else list(known.TILES))
    right = getattr(stumpy, names[0])
    monkeypatch.setattr(stumpy, names[0], lambda *arguments: right(*arguments[:-2], arguments[-2] ** 3, arguments[-1]))
    with pytest.raises(known.WrongAnswer, match=f"{names[0]} gave"):
        known.answers(in_pieces=in_pieces)


@pytest.mark.parametrize("name", ["self_join", "ab_join"])
def test_an_answer_of_our_own_kernel_that_is_wrong_is_noticed(warm, monkeypatch, name):
    from workers.matrix_profile import known

    assert known.tiles_answers() == ["tiles.self_join", "tiles.ab_join"]
    right = getattr(known, name)
    monkeypatch.setattr(known, name, lambda *series, **told: right(series[0] ** 3, *series[1:], **told))
    with pytest.raises(known.WrongAnswer, match=f"tiles.{name} gave"):
        known.tiles_answers()
