"""What one worker process owns on its machine: its nurseries, kept warm and replaced when they die, and its computing threads."""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from workers.contract import call_by_name
from workers.failures import JobFailure
from workers.nursery_client import Nursery, NurseryGone
from workers.slot import Slot

log = logging.getLogger(__name__)

WARM_SECONDS = 900.0
"""How long a nursery may take to warm: compiling everything anew on a slow machine, when there was no disk cache."""

TILES: Final = "workers.matrix_profile.tiles.warm:warm"
CPU, CUDA, SIMULATOR, TRAINING = "cpu", "cuda", "cuda-simulator", "training"


@dataclass(frozen=True)
class Recipe:
    """How a nursery is made."""

    preload: str
    what: str
    """What it loads, in words."""
    environment: Mapping[str, str]
    clean: str | None = None
    """What picks, of this process's environment, what the nursery shall have; all of it, and what computing needs, where None."""


RECIPES: Final[Mapping[str, Recipe]] = {
    CPU: Recipe("workers.matrix_profile.warm:warm", "STUMPY's kernels", {}),
    # Numba's simulator is chosen before Numba is imported, so it has a warm parent of its own.
    SIMULATOR: Recipe(
        "workers.cuda.simulator:warm",
        "STUMPY on Numba's CUDA simulator",
        {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_CUDA": "0"},
    ),
    # No thread may run in a process that forks: not BLAS's, which start with the import of numpy, and not Arrow's.
    TRAINING: Recipe(
        "workers.training.warm:warm",
        "torch and Lightning",
        {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"},
        clean="workers.training.environment:clean",
    ),
}
PARENT_OF: Final[Mapping[str, str]] = {CPU: CPU, CUDA: CPU, SIMULATOR: SIMULATOR, TRAINING: TRAINING}
"""Who forks the children of a device. Those for CUDA become fresh interpreters, so any parent will do."""


class NotWarm(JobFailure):
    """The nursery could not be warmed; the worker's own log says why."""


class Host:
    """Owns the nurseries and the slot. Thread-safe."""

    def __init__(self, environment: Mapping[str, str], devices: Sequence[str] = (CPU,)) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._closed = False
        self.slot = Slot(int(environment.get("NUMBA_NUM_THREADS", 1)))
        """The computing threads."""
        self._tiles: Future[None] = Future()
        self._nurseries = {device: self._born(device) for device in devices}

    def _born(self, device: str) -> Nursery:
        recipe = RECIPES[device]
        if recipe.clean:
            return Nursery([recipe.preload], recipe.environment, base=call_by_name(recipe.clean, os.environ))
        return Nursery([recipe.preload], {**self._environment, **recipe.environment})

    def is_warm(self, device: str = CPU) -> bool:
        """Whether a piece sent here would begin at once. A nursery that has ended is started again, which nobody waits for here."""
        return self._living(PARENT_OF[device]).ready.is_set()

    def load_tiles(self) -> None:
        """Load, or compile, the kernel of tiles: they run in this process's own threads, and need no child."""
        try:
            call_by_name(TILES)
        except Exception as fault:
            log.exception("tiles cannot be computed here")
            self._tiles.set_exception(
                NotWarm(f"The kernel of tiles could not be loaded: {type(fault).__name__}: {fault}")
            )
        else:
            self._tiles.set_result(None)

    @property
    def tiles_settled(self) -> bool:
        """Whether it is known by now that tiles can be computed here, or cannot."""
        return self._tiles.done()

    def require_tiles(self) -> None:
        """Return when this process computes tiles. Raises NotWarm where it never will."""
        self._tiles.result(WARM_SECONDS)

    def nursery_for(self, device: str, unless: threading.Event | None = None) -> Nursery:
        """A warm nursery for children that compute on `device`. One that has ended is started again; raises NotWarm when it cannot be.

        Once `unless` is set there is nothing to wait for, and it comes as it is.
        """
        nursery = self._living(PARENT_OF[device])  # born now where nobody needed it before
        nursery.wait_ready(WARM_SECONDS, unless)
        if not nursery.ready.is_set() and not (unless and unless.is_set()):
            what = RECIPES[PARENT_OF[device]].what
            raise NotWarm(f"The process that loads {what} did not start; the worker's log says why.")
        return nursery

    def _living(self, parent: str) -> Nursery:
        with self._lock:
            if self._closed:
                raise NurseryGone("This worker is leaving.")
            nursery = self._nurseries.get(parent)
            if nursery is None or nursery.gone.is_set():
                if nursery is not None:
                    nursery.close()
                nursery = self._nurseries[parent] = self._born(parent)
            return nursery

    def close(self) -> None:
        """End all nurseries with their children; none is born after this."""
        with self._lock:
            self._closed = True
            nurseries = list(self._nurseries.values())
        for nursery in nurseries:
            nursery.close()


_current: Host | None = None


def set_current_host(host: Host | None) -> None:
    """Make `host` the one that drivers in this process find."""
    global _current
    _current = host


def current_host() -> Host:
    if _current is None:
        raise RuntimeError("this process is no Tidemill worker; workers are started with `python -m workers`")
    return _current
