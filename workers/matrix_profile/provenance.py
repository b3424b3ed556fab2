"""Where a result comes from: versions, hardware, precision."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba


@cache
def versions() -> dict[str, str | None]:
    """Installed versions of what a profile's numbers depend on; None where a package is not installed."""
    return {"python": platform.python_version()} | {
        name: _version(name) for name in ("numpy", "numba", "stumpy", "tidemill")
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def cpu_model() -> str:
    """The processor's name as Linux gives it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def origin() -> dict[str, Any]:
    """The part of a provenance that is the same for every profile this process makes."""
    hardware = {"cpu": cpu_model(), "machine": platform.machine()}
    threads = int(numba.config.NUMBA_NUM_THREADS)
    return {"versions": versions(), "hardware": hardware, "precision": "float64", "threads": threads}
