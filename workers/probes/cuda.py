"""The cuda probe: ask the driver, then have STUMPY's GPU functions compute a known profile on every device."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from workers import hardware
from workers.cuda.driver import Facts, obstacle
from workers.cuda.environment import cuda_environment
from workers.environment import simulator_wanted
from workers.host import SIMULATOR, Host
from workers.nursery_client import Nursery, PieceFailed
from workers.probes.finding import Finding, NoAnswer, in_child

GPU_WALK = (8192, 50)
"""Length and window of the series that speeds are measured with."""
MOST_DEVICES = 64


def check_cuda(host: Host) -> Finding:
    """`executed` on every device; else, where it is wanted, `simulated`; else why not."""
    found = on_devices()
    if found[0] == "executed" or not simulator_wanted():
        return found
    in_child(host.nursery_for(SIMULATOR), "workers.cuda.known:answer")
    return (
        "simulated",
        f"gpu_stump and gpu_aamp gave the known answers on Numba's CUDA simulator, not on a GPU. {found[1]}",
    )


def on_devices() -> Finding:
    """Needs no warm nursery: what touches CUDA is a fresh interpreter anyway."""
    with _interpreters() as fresh:
        facts = Facts(**fresh("workers.cuda.driver:ask"))
        if reason := obstacle(facts):
            return "absent", reason
        try:
            devices = fresh("workers.cuda.known:answer")
        except (PieceFailed, NoAnswer) as failure:
            return "importable", f"The CUDA driver shows {facts.devices} device(s), but no GPU function ran. {failure}"
    return "executed", f"gpu_stump and gpu_aamp gave the known answers on {devices} device(s)"


@contextmanager
def _interpreters() -> Iterator[Any]:
    """`fresh(call, *arguments)`: the value of a call in a new interpreter that sees every device of this worker."""
    names = hardware.visible_devices()
    devices = range(MOST_DEVICES if names is None else len(names))
    with closing(Nursery([], {})) as nursery, TemporaryDirectory() as scratch:
        environment = cuda_environment(devices, scratch)
        yield lambda call, *arguments: in_child(nursery, call, *arguments, fresh=environment)


def gpu_speeds() -> dict[str, float]:
    """Cells a second of the GPU functions on the first device."""
    with _interpreters() as fresh:
        speeds: dict[str, float] = fresh("workers.cuda.known:measure", *GPU_WALK)
    return speeds
