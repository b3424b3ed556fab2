"""What one worker process owns on its machine: its nursery, kept warm and replaced when it dies."""

import threading
from collections.abc import Mapping

from workers.failures import JobFailure
from workers.nursery_client import Nursery

PROFILE_PRELOAD = ["workers.matrix_profile.warm:warm"]
WARM_SECONDS = 300.0
"""How long a nursery may take to warm: compiling everything anew on a slow machine, when there was no disk cache."""


class NotWarm(JobFailure):
    """The nursery could not be warmed; the worker's own log says why."""


class Host:
    """Owns the profile nursery. Thread-safe."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._profile = Nursery(PROFILE_PRELOAD, self._environment)

    def nursery_for(self, kind: str, unless: threading.Event | None = None) -> Nursery:
        """A warm nursery for `kind`. One that has ended is started again; raises NotWarm when it cannot be.

        Once `unless` is set there is nothing to wait for, and it comes as it is.
        """
        with self._lock:
            if self._profile.gone.is_set():
                self._profile.close()
                self._profile = Nursery(PROFILE_PRELOAD, self._environment)
            nursery = self._profile
        nursery.wait_ready(WARM_SECONDS, unless)
        if not nursery.ready.is_set() and not (unless and unless.is_set()):
            raise NotWarm("The process that loads STUMPY's kernels did not start; the worker's log says why.")
        return nursery

    def close(self) -> None:
        self._profile.close()


_current: Host | None = None


def set_current_host(host: Host | None) -> None:
    """Make `host` the one that drivers in this process find."""
    global _current
    _current = host


def current_host() -> Host:
    if _current is None:
        raise RuntimeError("this process is no Tidemill worker; workers are started with `python -m workers`")
    return _current
