"""The environment compiled code needs, decided before numpy or numba is imported."""

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from workers.failures import CannotJoin


def cache_folder() -> Path:
    """Where compiled code is kept: `TIDEMILL_CACHE_DIR`, or `var/cache/tidemill` in this Python's prefix."""
    chosen = os.environ.get("TIDEMILL_CACHE_DIR")
    return Path(chosen) if chosen else Path(sys.prefix, "var", "cache", "tidemill")


def numba_cache_folder(threads: int) -> Path:
    """Numba's disk cache for processes of `threads` threads.

    Compiled parallel code contains the number of threads, and the cache's key does not: one folder for each number. Nor does the key
    of a function know the functions in other files that were compiled into it: one folder for each state of our kernels, too.
    """
    return cache_folder() / "numba" / f"{threads}-{_kernels()}"


def require_cache_folder() -> None:
    """Raises CannotJoin where compiled code cannot be kept: without its cache Numba refuses to compile at all."""
    folder = cache_folder() / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise CannotJoin(
            f"Compiled kernels cannot be kept in {folder}: {fault.strerror or fault}. "
            "Name a folder that this user may write in TIDEMILL_CACHE_DIR."
        ) from fault


@cache
def _kernels() -> str:
    """A few digits that change with our compiled code."""
    summed = hashlib.sha256()
    for path in sorted(Path(__file__).with_name("matrix_profile").rglob("*.py")):
        text = path.read_bytes()
        if b"njit" in text:
            summed.update(text)
    return summed.hexdigest()[:8]


def compute_environment(threads: int) -> dict[str, str]:
    """Variables to set before the first import of numpy or numba in a process that computes.

    Numba's `workqueue` layer is the one that survives a fork. BLAS stays on the calling thread and Arrow's allocator
    gets no thread of its own, so that a warm parent has none but Numba's idle ones.

    Importing STUMPY initialises CUDA, and a process that has done so must not fork: so it is off, but for the fresh
    interpreters of CUDA jobs (workers.cuda.job.environment).
    """
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return one | {
        "NUMBA_CACHE_DIR": str(numba_cache_folder(threads)),
        "NUMBA_NUM_THREADS": str(threads),
        "NUMBA_THREADING_LAYER": "workqueue",
        "NUMBA_DISABLE_CUDA": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }


def simulator_wanted() -> bool:
    """`TIDEMILL_CUDA_SIMULATOR`: whether this worker runs GPU functions on Numba's simulator."""
    return os.environ.get("TIDEMILL_CUDA_SIMULATOR", "").strip().lower() in ("1", "true", "yes", "on")


def training_warms() -> bool:
    """`TIDEMILL_TRAINING_WARM`: whether torch and Lightning are loaded as soon as a worker has joined, or when they are first needed."""
    return os.environ.get("TIDEMILL_TRAINING_WARM", "").strip().lower() not in ("0", "false", "no", "off")
