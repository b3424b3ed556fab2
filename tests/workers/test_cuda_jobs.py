"""STUMPY's eight GPU functions, executed on Numba's simulator as CUDA jobs are, against the brute-force oracle."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.house import eventually
from tests.oracle import matrix_profile, mpdist, radii
from tests.processes import children
from workers.cuda.environment import cuda_environment
from workers.cuda.job import FUNCTIONS
from workers.environment import compute_environment
from workers.host import SIMULATOR, Host
from workers.nursery_client import Nursery, PieceFailed, PieceKilled

ERRANDS = "tests.workers.cuda_errands"
WINDOW = 8
RANDOM = np.random.default_rng(3)
A, B, C = (RANDOM.standard_normal(n) for n in (60, 45, 30))
HOLED = A.copy()
HOLED[20], HOLED[40:52] = np.nan, 1.5
"""A gap, and a flat stretch longer than the window."""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Path:
    """Where temporary files go that are no job's."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def simulator(elsewhere) -> Iterator[Nursery]:
    environment = compute_environment(1) | {"TMPDIR": str(elsewhere)}
    with closing(Host(environment, devices=(SIMULATOR,))) as host:
        yield host.nursery_for(SIMULATOR)


@pytest.fixture
def job(simulator, tmp_path):
    """Run an errand as a CUDA job."""

    def run(errand: str = "call", **task):
        arguments = [f"{ERRANDS}:{errand}", str(tmp_path), task]
        return simulator.fork("workers.cuda.job:run", arguments, log=str(tmp_path / "log.txt")).follow(
            lambda message: None
        )

    return run


def normalised(function: str) -> bool:
    return "aamp" not in function


def lists(*series):
    return [[float(x) for x in each] for each in series]


PROFILES = {
    "self-join": ([A], 1, 0),
    "gap and flat stretch": ([HOLED], 3, 0),
    "AB-join": ([A, B], 1, 0),
    "two devices": ([A], 1, [0, 0]),
    "two devices, AB-join": ([HOLED, B], 3, [0, 0]),
}


@pytest.mark.parametrize("function", ["gpu_stump", "gpu_aamp"])
@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_is_right(job, function, case):
    series, k, devices = PROFILES[case]
    told = job(function=function, series=lists(*series), window=WINDOW, k=k, device_id=devices)
    found = np.array(told, dtype=np.float64)
    truth = matrix_profile(
        series[0], WINDOW, against=series[1] if len(series) == 2 else None, normalize=normalised(function), k=k
    )
    np.testing.assert_allclose(found[:, :k], truth.distances, atol=1e-6)
    np.testing.assert_allclose(truth.at(found[:, k : 2 * k].astype(int)), truth.distances, atol=1e-6)
    if len(series) == 1:
        np.testing.assert_allclose(truth.at(found[:, 2 * k].astype(int)), truth.left, atol=1e-6)
        np.testing.assert_allclose(truth.at(found[:, 2 * k + 1].astype(int)), truth.right, atol=1e-6)


@pytest.mark.parametrize("function", ["gpu_mpdist", "gpu_aampdist"])
def test_mpdist_is_right(job, function):
    found = job(function=function, series=lists(A, B), window=WINDOW)
    assert found == pytest.approx(mpdist(A, B, WINDOW, normalize=normalised(function)), abs=1e-6)


@pytest.mark.parametrize("function", ["gpu_ostinato", "gpu_aamp_ostinato"])
def test_a_consensus_motif_is_right(job, function):
    truth = radii([A, B, C], WINDOW, normalize=normalised(function))
    radius, which, where = job(function=function, series=lists(A, B, C), window=WINDOW)
    assert radius == pytest.approx(min(map(min, truth)), abs=1e-6)
    assert truth[which][where] == pytest.approx(radius, abs=1e-6)


@pytest.mark.parametrize("function", ["gpu_stimp", "gpu_aamp_stimp"])
def test_a_pan_profile_is_right(job, function):
    pan = job(function=function, series=lists(B), window=WINDOW)
    assert sorted(map(int, pan)) == [WINDOW, WINDOW + 1, WINDOW + 2]
    for window, profile in pan.items():
        truth = matrix_profile(B, int(window), normalize=normalised(function)).distances[:, 0]
        np.testing.assert_allclose(profile[: len(truth)], truth, atol=1e-6)


def test_all_eight_functions_are_tested_here():
    text = Path(__file__).read_text()
    assert len(FUNCTIONS) == 8
    assert all(f'"{name}"' in text for name in FUNCTIONS)


def test_what_stumpy_leaves_behind_stays_in_the_jobs_own_folder(job, tmp_path, elsewhere):
    job(function="gpu_stump", series=lists(C), window=WINDOW, device_id=[0, 0])
    assert [file for file in tmp_path.iterdir() if file.name != "log.txt"]  # or there would be nothing to look after
    assert list(elsewhere.iterdir()) == []


def test_an_interpreter_of_its_own_is_told_its_devices_and_has_no_working_stumpy_where_there_is_no_gpu(
    simulator, tmp_path, monkeypatch
):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    environment = cuda_environment([1, 2], str(tmp_path))
    told = simulator.fork(f"{ERRANDS}:identity", [{}], fresh=environment).follow(print)
    assert told == {"numbers": None, "devices": "1,2", "disabled": "0", "temporary": str(tmp_path)}
    nowhere = {**environment, "CUDA_VISIBLE_DEVICES": ""}
    task = {"function": "gpu_stump", "series": lists(C), "window": WINDOW}
    with pytest.raises(PieceFailed, match="Numba finds no working CUDA"):
        simulator.fork("workers.cuda.job:run", [f"{ERRANDS}:call", str(tmp_path), task], fresh=nowhere).follow(print)


def test_a_job_numbers_its_devices_from_0_whichever_of_the_workers_they_are(job, tmp_path):
    told = job("identity", devices=[3, 5])
    assert told["numbers"] == [0, 1]
    assert told["temporary"] == str(tmp_path)


@pytest.mark.parametrize(
    ("how", "type_", "words"),
    [
        ("run_out_of_device_memory", "/problems/out-of-memory", "The GPU's memory ran out"),
        ("be_killed", "/problems/out-of-memory", "the worker's memory ran out"),
    ],
)
def test_a_device_that_fails_ends_the_job_at_once_and_says_why(job, how, type_, words):
    with pytest.raises(PieceFailed) as failure:
        job("one_device_fails", how=how)
    assert failure.value.problem["type"] == type_
    assert words in failure.value.problem["detail"]


def test_a_devices_failure_brings_its_traceback_as_the_cause(job):
    words, cause, code = job("cause_of_a_failure")
    assert words == "ValueError: secret text that stays in the log"
    assert "in lose_its_temper" in cause
    assert code == 1


def test_a_killed_job_takes_the_processes_of_its_devices_along(simulator, tmp_path):
    pids: list[int] = []
    piece = simulator.fork("workers.cuda.job:run", [f"{ERRANDS}:two_devices_at_work", str(tmp_path), {}])

    def kill_when_at_work(message: dict) -> None:
        told = [int(word) for word in message["data"]["message"].split()]
        eventually(lambda: all(children(pid) for pid in told), 60)
        pids.extend(told + [child.pid for pid in told for child in children(pid)])
        piece.kill()

    with pytest.raises(PieceKilled):
        piece.follow(kill_when_at_work)
    assert len(pids) == 4
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), 2)


def test_a_simulator_without_the_switch_that_counts_only_before_the_import_refuses():
    with closing(Nursery(["workers.cuda.simulator:warm"], {**compute_environment(1)})) as nursery:
        nursery.wait_ready(60)
        assert not nursery.ready.is_set()
