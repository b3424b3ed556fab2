"""What this machine is: processor, memory, GPUs, versions. Read from the system, never assumed; nothing here raises."""

import contextlib
import os
import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psutil

from workers import cgroups

SIMD = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "asimd", "sve")
PACKAGES = (
    *("numpy", "numba", "stumpy", "torch", "lightning", "dask", "distributed", "ray", "numba-cuda"),
    # What some strategies and precisions of training jobs need.
    *("deepspeed", "transformer_engine", "bitsandbytes"),
)
NVIDIA: Final = "0x10de"
"""NVIDIA's PCI vendor id."""
DISPLAY: Final = "0x03"
"""First byte of a PCI class: display controllers, and GPUs without a display."""


def cpu() -> dict[str, Any]:
    """Model name, usable cores and vector extensions, from /proc/cpuinfo."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    return {
        "model": facts.get("model name") or facts.get("CPU part") or os.uname().machine,
        "cores": cores(),
        "simd": [name for name in SIMD if name in flags],
    }


def cores(root: Path = Path("/")) -> int:
    """How many cores this process may keep busy: those it may run on, and no more than its container's share of their time."""
    there = len(os.sched_getaffinity(0))
    quota = cgroups.cores(root)
    # Whole ones: a thread beyond the quota only has all of them, and the heartbeat with them, stand still now and then.
    return there if quota is None else max(1, min(there, int(quota)))


def memory_bytes(root: Path = Path("/")) -> int:
    """This machine's memory, or what its container may have of it."""
    there = int(psutil.virtual_memory().total)
    return min(there, cgroups.memory_bytes(root) or there)


def visible_devices() -> list[str] | None:
    """What `CUDA_VISIBLE_DEVICES` leaves this process, as it names them; None where it is not set and all are visible."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return None
    names = [name.strip() for name in chosen.split(",")]
    # CUDA stops at the first name that means no device, -1 above all.
    end = next((i for i, name in enumerate(names) if not name or name.startswith("-")), len(names))
    return names[:end]


def gpus() -> list[dict[str, Any]]:
    """The GPUs that CUDA would show this process, in its order (that of the PCI bus); none where there is no driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, or no permission: the cuda probe tells which
        return []
    try:
        driver = _or_none(pynvml.nvmlSystemGetDriverVersion)
        return [_gpu(pynvml, index, handle, driver) for index, handle in enumerate(_handles(pynvml))]
    except Exception:
        return []
    finally:
        pynvml.nvmlShutdown()


def _handles(nvml: Any) -> Iterator[Any]:
    names = visible_devices()
    if names is None:
        names = [str(index) for index in range(nvml.nvmlDeviceGetCount())]
    for name in names:
        handle = _or_none(partial(_handle, nvml, name))
        if handle is None:
            return  # as CUDA does
        yield handle


def _handle(nvml: Any, name: str) -> Any:
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


def _gpu(nvml: Any, index: int, handle: Any, driver: str | None) -> dict[str, Any]:
    memory = _or_none(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _or_none(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return {
        "index": index,
        "uuid": _or_none(lambda: nvml.nvmlDeviceGetUUID(handle)),
        "name": _or_none(lambda: nvml.nvmlDeviceGetName(handle)),
        "memory_bytes": int(memory.total) if memory else None,
        "free_bytes": int(memory.free) if memory else None,
        "compute_capability": "{}.{}".format(*capability) if capability else None,
        "driver": driver,
    }


def _or_none(ask: Callable[[], Any]) -> Any:
    """One question to NVML; not every device answers every one."""
    try:
        return ask()
    except Exception:
        return None


def nvidia_device(root: Path = Path("/")) -> str | None:
    """A trace of an NVIDIA GPU that needs no driver: a device file, or a card on the PCI bus."""
    for file in sorted(root.glob("dev/nvidia[0-9]*")):
        return str(file)
    for card in sorted(root.glob("sys/bus/pci/devices/*")):
        with contextlib.suppress(OSError):
            if (card / "vendor").read_text().strip() == NVIDIA and (card / "class").read_text().startswith(DISPLAY):
                return f"PCI {card.name}"
    return None


def versions() -> dict[str, str]:
    """Installed versions of what decides results; a package that is not installed is not named."""
    found = {"python": platform.python_version()}
    for package in ("tidemill", *PACKAGES):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
