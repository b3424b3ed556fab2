"""Skips what needs a GPU where none works, with the probe's own reason."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workers import hardware
from workers.cuda.environment import cuda_environment
from workers.environment import compute_environment
from workers.nursery_client import Nursery, Piece
from workers.probes.cuda import on_devices


@pytest.fixture(scope="session")
def gpus() -> list[dict[str, Any]]:
    """The GPUs of this machine, on which the probe's known case was right."""
    evidence, detail = on_devices()
    if evidence != "executed":
        pytest.skip(f"no GPU function runs here: {detail}")
    return hardware.gpus()


@pytest.fixture(scope="session")
def nursery(gpus) -> Iterator[Nursery]:
    with closing(Nursery([], compute_environment(2))) as nursery:
        yield nursery


@pytest.fixture
def start(nursery, tmp_path) -> Callable[..., Piece]:
    """`start(call, task, devices)`: a CUDA job on its way, as the driver starts one."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def begin(call: str, task: dict[str, Any], devices: list[int]) -> Piece:
        return nursery.fork(
            "workers.cuda.job:run",
            [call, str(scratch), {**task, "devices": devices}],
            log=str(tmp_path / "log.txt"),
            fresh=cuda_environment(devices, str(scratch)),
        )

    return begin


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "job"
    made.mkdir()
    return made
