"""What this machine is: processor, memory, GPUs, versions. Read from the system, never assumed."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

SIMD = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "asimd", "sve")
PACKAGES = ("numpy", "numba", "stumpy", "torch", "lightning", "dask", "distributed", "ray", "numba-cuda")


def cpu() -> dict[str, Any]:
    """Model name, usable cores and vector extensions, from /proc/cpuinfo."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    return {
        "model": facts.get("model name") or facts.get("CPU part") or os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "simd": [name for name in SIMD if name in flags],
    }


def memory_bytes() -> int:
    return int(psutil.virtual_memory().total)


def gpus() -> list[dict[str, Any]]:
    """The GPUs that NVIDIA's management library shows; none where there is no driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, or no permission: the cuda probe tells which
        return []
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        return [_gpu(pynvml, index, driver) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: Any, index: int, driver: str) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return {
        "index": index,
        "uuid": nvml.nvmlDeviceGetUUID(handle),
        "name": nvml.nvmlDeviceGetName(handle),
        "memory_bytes": int(memory.total),
        "free_bytes": int(memory.free),
        "compute_capability": f"{major}.{minor}",
        "driver": driver,
    }


def versions() -> dict[str, str]:
    """Installed versions of what decides results; a package that is not installed is not named."""
    found = {"python": platform.python_version(), "tidemill": metadata.version("tidemill")}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
