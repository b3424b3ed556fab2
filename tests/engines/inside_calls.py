"""What the tests of calls between workers have a worker do, in its own process."""

import contextlib
import os
import signal
import time

from workers import agent as agents
from workers.contract import call_by_name

OPENERS = {"dask": "workers.spread.dask:open_cluster", "ray": "workers.spread.ray:open_cluster"}


def call(address: str, function: str, arguments: list) -> object:
    """What a call of another worker comes to, or the name of the exception and its words."""
    with contextlib.closing(cluster()) as opened:
        try:
            return opened.call(address, function, arguments).result(30)
        except Exception as fault:
            return [type(fault).__name__, str(fault)]


def cluster():
    return call_by_name(OPENERS[agents.current().introduction.engine])


def call_while_it_is_killed(address: str) -> list:
    """Call a worker for long, and kill it meanwhile: how the call ends, and after how many seconds."""
    with contextlib.closing(cluster()) as opened:
        pid = opened.call(address, "os:getpid", []).result(30)
        long = opened.call(address, "time:sleep", [600])
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        started = time.monotonic()
        try:
            long.result(30)
        except Exception as fault:
            return [type(fault).__name__, time.monotonic() - started]
    return ["nothing", 0.0]


def reached_by() -> str:
    with contextlib.closing(cluster()) as opened:
        return opened.reached_by()
