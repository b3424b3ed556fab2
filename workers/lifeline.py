"""Ties a process to the one that started it: when the pipe on its standard input closes, it ends.

A pipe closes however its other end dies, kill -9 included, which no signal handler can promise. Also a Dask preload:
`dask scheduler --preload workers.lifeline` ends with its server.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, NoReturn


def end_now() -> NoReturn:
    os._exit(0)


def watch(on_end: Callable[[], object] = end_now) -> None:
    """Call `on_end` from a thread of its own once standard input is at its end."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        on_end()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def dask_setup(scheduler: Any) -> None:
    """Dask calls this when the scheduler starts."""
    watch()
