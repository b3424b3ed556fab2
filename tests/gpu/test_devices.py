"""STUMPY's GPU functions on real devices: right, apart from each other, stopped at once, and honest about memory."""

import time

import numpy as np
import pytest

from tests import oracle
from tests.gpu.cases import all_cases
from tests.house import eventually
from workers import hardware
from workers.nursery_client import PieceFailed, PieceKilled
from workers.operations import OPERATIONS
from workers.probes.cuda import gpu_speeds

RANDOM = np.random.default_rng(5)
SERIES = [RANDOM.standard_normal(n).cumsum() for n in (400, 300, 200)]
ERRANDS, CALL = "tests.gpu.errands", "tests.workers.cuda_errands:call"


def quiet(message: dict) -> None:
    """Not interested."""


@pytest.mark.parametrize("case", all_cases(SERIES), ids=lambda case: case.function)
def test_each_of_the_eight_functions_is_right_on_a_gpu(start, folder, case):
    answer = start(OPERATIONS[case.kind].run, case.task(folder, "cuda:0"), [0]).follow(quiet)
    case.check(answer, folder)


def test_each_device_is_the_one_that_was_asked_for(start, gpus):
    task = {"function": "gpu_stump", "series": [SERIES[0].tolist()], "window": 50}
    truth = oracle.matrix_profile(SERIES[0], 50).distances[:, 0]
    for device in range(len(gpus)):
        found = np.array(start(CALL, task, [device]).follow(quiet), dtype=np.float64)
        np.testing.assert_allclose(found[:, 0], truth, atol=1e-6)


@pytest.mark.parametrize("function", ["gpu_stump", "gpu_aamp"])
def test_two_processes_share_one_device(start, function):
    """As several devices do, for machines that have one."""
    task = {"function": function, "series": [SERIES[0].tolist()], "window": 50, "device_id": [0, 0]}
    found = np.array(start(CALL, task, [0]).follow(quiet), dtype=np.float64)
    truth = oracle.matrix_profile(SERIES[0], 50, normalize=function == "gpu_stump").distances[:, 0]
    np.testing.assert_allclose(found[:, 0], truth, atol=1e-6)


@pytest.mark.parametrize("case", all_cases(SERIES), ids=lambda case: case.function)
def test_each_function_is_right_on_all_devices_together(start, folder, gpus, case):
    if len(gpus) < 2:
        pytest.skip("this machine has one GPU")
    devices = list(range(len(gpus)))
    answer = start(OPERATIONS[case.kind].run, case.task(folder, "cuda:" + ",".join(map(str, devices))), devices)
    case.check(answer.follow(quiet), folder)


def test_memory_that_runs_out_on_the_device_is_told_apart(start, gpus):
    with pytest.raises(PieceFailed) as failure:
        start(f"{ERRANDS}:take_more_than_there_is", {"memory_bytes": gpus[0]["memory_bytes"]}, [0]).follow(quiet)
    assert failure.value.problem["type"] == "/problems/out-of-memory"
    assert "The GPU's memory ran out" in failure.value.problem["detail"]


def test_a_cancelled_job_gives_its_memory_back_within_seconds(start):
    def free() -> int:
        return hardware.gpus()[0]["free_bytes"]

    before, held = free(), []
    piece = start(f"{ERRANDS}:hold_memory_and_compute", {}, [0])

    def kill_once_it_computes(message: dict) -> None:
        held.append(before - free())
        time.sleep(3)
        piece.kill()

    with pytest.raises(PieceKilled):
        piece.follow(kill_once_it_computes)
    assert held[0] >= 1 << 30
    eventually(lambda: free() >= before - (64 << 20), 10)


def test_speeds_are_measured(gpus):
    speeds = gpu_speeds()
    assert set(speeds) == {"gpu_matrix_profile_cells_per_second", "gpu_p_norm_profile_cells_per_second"}
    assert all(speed > 1e6 for speed in speeds.values())
