"""Ties a process to the one that started it: when the pipe on its standard input closes, it ends.

A pipe closes however its other end dies, kill -9 included, which no signal handler can promise. Also a Dask preload:
`dask scheduler --preload workers.lifeline` ends with its server.

Or, where it is to leave in good order rather than end at once: it is sent SIGTERM when the other dies (`follow`).
"""

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn

PR_SET_PDEATHSIG: Final = 1


def end_now() -> NoReturn:
    os._exit(0)


def watch(on_end: Callable[[], object] = end_now) -> None:
    """Call `on_end` from a thread of its own once standard input is at its end."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        on_end()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def follow(parent: int) -> None:
    """Have the kernel send this process SIGTERM when `parent`, which has started it, dies; now, where it is dead already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def dask_setup(scheduler: Any) -> None:
    """Dask calls this when the scheduler starts."""
    watch()
