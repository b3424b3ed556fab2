"""What the tests of this folder do to servers and workers, and how they look at what came of it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.house import THRIFTY, House, long_series

WAVE = [float((i * i) % 23) for i in range(200)]
SMALL = {"kind": "matrix_profile", "params": {"series": {"values": WAVE}, "window": 20}}


def submit_long(house: House, n: int = 60_000, **fields) -> tuple[str, str]:
    """A job that computes for many seconds, by STUMPY. Returns its id and its dataset's."""
    with house.api() as api:
        dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(n))}).json()["id"]
        body = {"kind": "matrix_profile", "params": {"series": {"dataset": dataset}, "window": 100}, **fields}
        body["execution"] = {"implementation": "stumpy", **fields.get("execution", {})}
        return api.submit(body)["id"], dataset


def computing(api, job_id: str) -> bool:
    return api.job(job_id)["phase"] == "computing"


def ends(api, job_id: str) -> list[str]:
    return [
        e["data"]["to"]
        for e in api.events(job_id)
        if e["type"] == "state" and e["data"]["to"] in ("succeeded", "failed", "cancelled")
    ]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def process(arguments: Sequence[str], words: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with words.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdout=log, stderr=log, env={**os.environ, **THRIFTY, **environment}
        )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.wait(timeout=30)


@contextlib.contextmanager
def dask_scheduler(folder: Path) -> Iterator[str]:
    """A Dask scheduler of nobody's; its address."""
    port = free_port()
    with scheduler_at(port, folder):
        yield f"tcp://127.0.0.1:{port}"


def scheduler_at(port: int, folder: Path) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """The same, as a process to be hurt."""
    arguments = ["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    return process(arguments, folder / "scheduler.log")
