"""No forked process ever initialises CUDA, shown with a driver library that writes down who does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from workers.cuda.environment import cuda_environment
from workers.environment import compute_environment
from workers.host import CPU, SIMULATOR, Host
from workers.nursery_client import Nursery

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler here to make a driver library with")


@dataclass(frozen=True)
class Driver:
    """The library, and the log of those who called cuInit."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(self.folder), "FAKE_CUDA_LOG": str(self.folder / "log")}

    def initialised_by(self) -> list[tuple[int, bool]]:
        """(pid, whether it was a fork) of each call of cuInit."""
        log = self.folder / "log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(int(pid), forked == "1") for call, pid, forked in lines if call == "cuInit"]


@pytest.fixture
def driver(tmp_path, monkeypatch) -> Iterator[Driver]:
    source = Path(__file__).with_name("fake_cuda.c")
    library = tmp_path / "libcuda.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    found = Driver(tmp_path)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_log_tells_a_fork_from_a_process_of_its_own(driver):
    python(
        "import ctypes, os\nc = ctypes.CDLL('libcuda.so.1')\nif os.fork() == 0: c.cuInit(0)\nelse: os.wait(); c.cuInit(0)"
    )
    assert [forked for _, forked in driver.initialised_by()] == [True, False]


def test_importing_stumpy_initialises_cuda_unless_the_environment_of_our_processes_forbids_it(driver):
    pytest.importorskip("numba_cuda", reason="the extra `gpu` is not installed")
    python("import stumpy", NUMBA_DISABLE_CUDA="0", FAKE_CUDA_INIT="100")
    assert len(driver.initialised_by()) == 1
    python("import stumpy", **compute_environment(1))
    assert len(driver.initialised_by()) == 1


@pytest.mark.parametrize("device", [CPU, SIMULATOR])
def test_neither_a_warm_nursery_nor_its_forks_initialise_cuda_and_a_fresh_interpreter_does(driver, device, tmp_path):
    with closing(Host(compute_environment(1), devices=(device,))) as host:
        nursery = host.nursery_for(device)
        known = {CPU: ("workers.probes.cpu:known_answers", [True]), SIMULATOR: ("workers.cuda.known:answer", [])}[
            device
        ]
        for _ in range(2):
            nursery.fork(*known).follow(print)
        assert driver.initialised_by() == []

        fresh = nursery.fork("workers.cuda.driver:ask", [], fresh=cuda_environment([0], str(tmp_path)))
        assert fresh.follow(print)["missing"] is None
        ((pid, forked),) = driver.initialised_by()
        assert not forked
        assert pid not in (nursery.process.pid, os.getpid())


def test_probing_initialises_cuda_in_interpreters_of_their_own_alone(driver):
    probe("cpu")
    assert driver.initialised_by() == []
    probe("cuda", TIDEMILL_CUDA_SIMULATOR="true")
    assert [forked for _, forked in driver.initialised_by()] == [False]


def probe(check: str, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "workers.probe", "--check", check, "--json"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    (found,) = json.loads(done.stdout)
    return found


SAID = {
    "a driver without a device": ({"FAKE_CUDA_INIT": "100"}, "shows no device"),
    "no device left by the container": ({"FAKE_CUDA_COUNT": "0"}, "shows no device"),
    "a driver older than the runtime": ({"FAKE_CUDA_INIT": "35"}, "Update NVIDIA's driver"),
    "an error the driver does not know itself": ({"FAKE_CUDA_INIT": "999"}, "unknown error (999)"),
    "no memory for a context": ({"FAKE_CUDA_INIT": "2"}, "The GPU's memory ran out"),
    "a machine with NVSwitch before its manager runs": ({"FAKE_CUDA_INIT": "802"}, "Fabric Manager"),
}


@pytest.mark.parametrize("case", SAID)
def test_a_driver_that_shows_no_device_proves_nothing_and_says_what_to_do(driver, case):
    answers, words = SAID[case]
    found = probe("cuda", **answers)
    assert found["evidence"] == "absent"
    assert words in found["detail"]


def test_a_device_on_which_nothing_ran_is_not_executed(driver):
    """The library says there is one, and nothing more can be done with it: whatever is missing, it is no capability."""
    found = probe("cuda", FAKE_CUDA_COUNT="1")
    assert found["evidence"] in ("absent", "importable")
    assert "install" in found["detail"].lower() or "no GPU function ran" in found["detail"]


def test_a_nursery_without_anything_to_warm_runs_fresh_interpreters(driver, tmp_path):
    with closing(Nursery([], {})) as nursery:
        piece = nursery.fork("workers.cuda.driver:ask", [], fresh=cuda_environment([0], str(tmp_path)))
        assert piece.follow(print)["driver"] == 13000
