"""What CUDA's errors mean to people: one table, read by the probe and by jobs that fail.

Numbers and names are those of CUresult in NVIDIA's driver API; 35 is the runtime's cudaErrorInsufficientDriver.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from workers.failures import JobFailure, OutOfMemory

NO_DEVICE: Final = 100
TOO_OLD: Final = 35


@dataclass(frozen=True)
class CudaError:
    number: int
    name: str
    sentence: str
    """What it is, and what to do."""


OLD_DRIVER: Final = (
    "The CUDA driver is older than the CUDA toolkit that numba-cuda uses. "
    "Update NVIDIA's driver, or install an older toolkit: `pip install 'numba-cuda[cu12]'`."
)
BROKEN_DEVICE: Final = "Look at the kernel's log (`dmesg | grep -i xid`) and at `nvidia-smi`; a reset of the GPU or a reboot usually helps."

ERRORS: Final = (
    CudaError(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "The GPU's memory ran out. Use a shorter series, a GPU with more memory, or end what else runs on it (`nvidia-smi`).",
    ),
    CudaError(
        34,
        "CUDA_ERROR_STUB_LIBRARY",
        "The libcuda.so.1 found here is a toolkit's stub and no driver. Install NVIDIA's driver, or take the stub out of LD_LIBRARY_PATH.",
    ),
    CudaError(TOO_OLD, "CUDA_ERROR_INSUFFICIENT_DRIVER", OLD_DRIVER),
    CudaError(
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "The GPU is taken: another process has it to itself. End that process, or set the GPU's compute mode to default.",
    ),
    CudaError(
        NO_DEVICE,
        "CUDA_ERROR_NO_DEVICE",
        "The CUDA driver is installed but shows no device. Check `nvidia-smi`, CUDA_VISIBLE_DEVICES and, in a container, `--gpus all`.",
    ),
    CudaError(
        101,
        "CUDA_ERROR_INVALID_DEVICE",
        "There is no GPU of that number on this worker. `GET /capabilities` lists those there are.",
    ),
    CudaError(
        209,
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "This GPU is of a kind the CUDA toolkit makes no code for. Use a toolkit that knows it, or another GPU.",
    ),
    CudaError(
        214, "CUDA_ERROR_ECC_UNCORRECTABLE", f"The GPU's memory had an error that cannot be corrected. {BROKEN_DEVICE}"
    ),
    CudaError(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", OLD_DRIVER),
    CudaError(
        700, "CUDA_ERROR_ILLEGAL_ADDRESS", f"The GPU reports an access to memory that is not there. {BROKEN_DEVICE}"
    ),
    CudaError(
        702,
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "The system stopped a computation on the GPU because it took too long, as it does on one that also drives a display. "
        "Use a GPU without a display.",
    ),
    CudaError(719, "CUDA_ERROR_LAUNCH_FAILED", f"The GPU failed in the middle of a computation. {BROKEN_DEVICE}"),
    CudaError(
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "The GPU is not ready: on machines with NVSwitch, NVIDIA's Fabric Manager must run (`systemctl status nvidia-fabricmanager`).",
    ),
    CudaError(
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "The CUDA driver library and the kernel module are of different versions. Reboot, or load the module that belongs to the library.",
    ),
    CudaError(
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "The forward-compatibility driver found here does not support this GPU. Install NVIDIA's driver for it.",
    ),
    CudaError(999, "CUDA_ERROR_UNKNOWN", f"The CUDA driver reports an unknown error (999). {BROKEN_DEVICE}"),
)
BY_NUMBER: Final = {error.number: error for error in ERRORS}
BY_NAME: Final = {error.name: error for error in ERRORS}
NAME: Final = re.compile(r"\bCUDA_ERROR_[A-Z0-9_]+")


class GpuFailed(JobFailure):
    """The GPU or its driver failed; the message says how, and what to do on that machine."""

    slug, title, status = "gpu-failed", "GPU failed", 500


def sentence(number: int) -> str:
    """What error `number` of the driver means."""
    found = BY_NUMBER.get(number)
    return found.sentence if found else f"The CUDA driver reports error {number}. {BROKEN_DEVICE}"


def told(fault: BaseException) -> BaseException:
    """`fault`, or what people are to be told instead where it came from CUDA.

    Numba raises CudaAPIError, cuda-core CUDAError; both put the error's name into their text. Numba's own MemoryError on the way to
    the device carries no name and stays what it is.
    """
    if isinstance(fault, JobFailure):
        return fault
    for name in _names(fault):
        error = BY_NAME.get(name)
        if error is BY_NUMBER[2]:
            return OutOfMemory(error.sentence)
        return GpuFailed(error.sentence if error else f"The CUDA driver reports {name}. {BROKEN_DEVICE}")
    return fault


def _names(fault: BaseException) -> Iterator[str]:
    """CUDA's error names in a fault and in what caused it, outermost first."""
    seen: set[int] = set()
    link: Any = fault
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if found := NAME.search(str(link)):
            yield found.group()
        link = link.__cause__ or link.__context__
