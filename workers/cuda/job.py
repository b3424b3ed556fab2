"""Running a job that calls STUMPY's GPU functions: in a fresh interpreter on its devices, or in a child of the warm simulator."""

import importlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from workers.contract import call_by_name
from workers.cuda.errors import GpuFailed, told
from workers.cuda.pool import Processes

FUNCTIONS: Final = (
    "gpu_stump",
    "gpu_aamp",
    "gpu_mpdist",
    "gpu_aampdist",
    "gpu_ostinato",
    "gpu_aamp_ostinato",
    "gpu_stimp",
    "gpu_aamp_stimp",
)
SIMULATED_THREADS_PER_BLOCK: Final = 10
"""As in STUMPY's own tests: each is a thread of Python, and the default of 512 would start as many for each row of a profile."""


def run(call: str, scratch: str, task: dict[str, Any], reporter: Any) -> Any:
    """In the child: `call(task, reporter)` with STUMPY's GPU functions ready for it, and its devices numbered as it sees them.

    scratch: a folder that whoever forked us removes when we have ended, however we did: STUMPY leaves temporary files behind.
    """
    with failures_told(), temporary_files_in(scratch):
        prepare()
        devices = list(task.get("devices") or ())
        here = {"devices": list(range(len(devices))), "devices_of_worker": devices}
        return call_by_name(call, {**task, **here}, reporter)


def prepare() -> None:
    """Make this process ready for `stumpy.gpu_*`, on several devices too.

    Raises GpuFailed where STUMPY has only placeholders for its GPU functions.
    """
    import numba

    from workers.stumpys import compiled, config, stumpy

    for module, name in compiled.get_njit_funcs():  # what the GPU functions do on the CPU comes from the disk cache
        getattr(importlib.import_module(f"stumpy.{module}"), name).enable_caching()
    if missing := [name for name in FUNCTIONS if getattr(stumpy, name).__module__ != f"stumpy.{name}"]:
        raise GpuFailed(
            f"STUMPY has no {', '.join(missing)} here, because Numba finds no working CUDA; "
            "`python -m workers.probe --check cuda` says why."
        )
    if numba.config.ENABLE_CUDASIM:
        config.STUMPY_THREADS_PER_BLOCK = SIMULATED_THREADS_PER_BLOCK
    for name in ("gpu_stump", "gpu_aamp"):
        vars(importlib.import_module(f"stumpy.{name}"))["mp"] = Processes


def device_id(devices: Sequence[int], windows: int) -> int | list[int]:
    """STUMPY's `device_id` for a job that holds `devices`, where its shortest series has `windows` windows.

    STUMPY cuts them into stretches of 1 + windows // n, and fails where that makes fewer stretches than devices.
    """
    count = max((n for n in range(1, len(devices) + 1) if n * n <= windows), default=1)
    return 0 if count == 1 else list(range(count))


@contextmanager
def failures_told() -> Iterator[None]:
    """CUDA's errors leave as what people are told, with the original as the cause."""
    try:
        yield
    except Exception as fault:
        words = told(fault)
        if words is fault:
            raise
        raise words from fault


@contextmanager
def temporary_files_in(folder: str) -> Iterator[None]:
    """Temporary files of this process, and of those it starts, go into `folder`."""
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]
