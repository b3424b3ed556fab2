"""Each kind of job on the eight GPU functions: the operation itself, on Numba's simulator, against the brute-force oracle."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from tests.workers.cuda_cases import all_cases
from workers.cuda.job import FUNCTIONS
from workers.environment import compute_environment
from workers.host import SIMULATOR, Host
from workers.nursery_client import Nursery
from workers.operations import OPERATIONS

RANDOM = np.random.default_rng(11)
SERIES = [RANDOM.standard_normal(n).cumsum() for n in (60, 45, 30)]
CASES = all_cases(SERIES)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Nursery]:
    with closing(Host(compute_environment(1), devices=(SIMULATOR,))) as host:
        yield host.nursery_for(SIMULATOR)


def test_the_cases_are_the_eight_functions():
    assert sorted(case.function for case in CASES) == sorted(FUNCTIONS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function)
def test_a_job_on_a_gpu_function_is_right(simulator, case, tmp_path):
    folder, scratch = tmp_path / "job", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    arguments = [OPERATIONS[case.kind].run, str(scratch), case.task(folder, "cuda-simulator")]
    answer = simulator.fork("workers.cuda.job:run", arguments, log=str(tmp_path / "log.txt")).follow(
        lambda message: None
    )
    case.check(answer, folder)
