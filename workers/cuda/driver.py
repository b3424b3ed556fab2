"""What the CUDA driver of this machine says of itself, and what is wrong where no GPU function can run."""

import ctypes
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Final

from workers import hardware
from workers.cuda.errors import NO_DEVICE, OLD_DRIVER, sentence

LIBRARY: Final = "libcuda.so.1"
GPU_EXTRA: Final = "`pip install 'tidemill[gpu]'`"


@dataclass(frozen=True)
class Facts:
    """What was found on the way to a GPU."""

    missing: str | None = None
    """The loader's words, where there is no driver library."""
    initialised: int = 0
    """What cuInit returned."""
    devices: int = 0
    driver: int = 0
    """The newest CUDA the driver knows: 13020 is 13.2."""
    device: str | None = None
    """A trace of an NVIDIA GPU that needs no driver."""
    numba_cuda: str | None = None
    numpy: str = ""
    toolkit: int = 0
    """The CUDA toolkit that numba-cuda compiles with, 0 where there is none."""
    no_toolkit: str = ""
    """Why there is none."""


def ask(reporter: object) -> dict[str, Any]:
    """In a fresh interpreter (one that has touched CUDA must never fork): load the driver and initialise it."""
    numba_cuda, numpy = _version("numba-cuda"), _version("numpy") or ""
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError as fault:
        return asdict(Facts(missing=str(fault), device=hardware.nvidia_device(), numba_cuda=numba_cuda, numpy=numpy))
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    code = driver.cuInit(0)
    if code == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    toolkit, why = _toolkit() if count.value and numba_cuda else (0, "")
    return asdict(
        Facts(
            initialised=code,
            devices=count.value,
            driver=version.value,
            device=hardware.nvidia_device(),
            toolkit=toolkit,
            no_toolkit=why,
            numba_cuda=numba_cuda,
            numpy=numpy,
        )
    )


def _toolkit() -> tuple[int, str]:
    try:
        from numba import cuda
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()
        major, minor = cuda.runtime.get_version()
    except Exception as fault:
        return 0, str(fault).splitlines()[0] if str(fault) else type(fault).__name__
    return int(major) * 1000 + int(minor) * 10, ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Obstacle:
    """A reason why no GPU function can run: when it holds, and its sentence, which says what to do."""

    name: str
    holds: Callable[[Facts], bool]
    say: Callable[[Facts], str]


OBSTACLES: Final = (
    Obstacle(
        "device without a driver",
        lambda f: f.missing is not None and f.device is not None,
        lambda f: (
            f"This machine has an NVIDIA device ({f.device}), but the CUDA driver library cannot be found ({f.missing}). "
            "Install NVIDIA's driver; in a container, start it with `--gpus all` and the NVIDIA Container Toolkit."
        ),
    ),
    Obstacle(
        "no driver",
        lambda f: f.missing is not None,
        lambda f: (
            f"The CUDA driver library cannot be found ({f.missing}), and no NVIDIA device is to be seen. "
            "Use a machine with an NVIDIA GPU and its driver."
        ),
    ),
    Obstacle("driver error", lambda f: f.initialised != 0, lambda f: sentence(f.initialised)),
    Obstacle("no device", lambda f: f.devices == 0, lambda f: sentence(NO_DEVICE)),
    Obstacle(
        "no numba-cuda",
        lambda f: f.numba_cuda is None,
        lambda f: (
            "numba-cuda is not installed, and the CUDA target that Numba itself brings is broken for STUMPY since 0.66. "
            f"Install the extra `gpu`: {GPU_EXTRA}."
        ),
    ),
    Obstacle(
        "numpy too new",
        lambda f: _numbers(f.numpy) >= (2, 5),
        lambda f: (
            f"numba-cuda {f.numba_cuda} needs numpy below 2.5, and {f.numpy} is installed: `pip install 'numpy<2.5'`."
        ),
    ),
    Obstacle(
        "no toolkit",
        lambda f: f.toolkit == 0,
        lambda f: (
            f"numba-cuda finds no CUDA toolkit to compile with ({f.no_toolkit}). "
            f"Install one that the driver knows (CUDA {_dotted(f.driver)}): `pip install 'numba-cuda[cu{min(f.driver // 1000, 13)}]'`."
        ),
    ),
    Obstacle(
        "driver older than the toolkit",
        lambda f: f.driver // 1000 < f.toolkit // 1000,
        lambda f: f"{OLD_DRIVER} The driver knows CUDA {_dotted(f.driver)}, the toolkit is {_dotted(f.toolkit)}.",
    ),
)


def obstacle(facts: Facts) -> str | None:
    """The first thing that keeps GPU functions from running, in a sentence; None where nothing does."""
    return next((each.say(facts) for each in OBSTACLES if each.holds(facts)), None)


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
