"""An engine by itself, on a loop of its own, with a clerk in the server's place."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.engines.base import Engine, EngineDown
from tests.engines.clerk import Clerk
from tests.house import THRIFTY, eventually
from tests.processes import below, words
from workers.ray_head import SHORT, own_prefix

NAMES = ("dask", "ray")


def make(name: str, folder: Path, address: str = "embedded") -> Engine:
    if name == "dask":
        from app.engines.dask import DaskEngine

        return DaskEngine(address, folder, 1, 1, None)
    from app.engines.ray import RayEngine

    return RayEngine(address, folder, 1, 1, None)


class Rig:
    def __init__(self, engine: Engine, folder: Path, clerk: Clerk) -> None:
        self.engine, self.folder, self.clerk = engine, folder, clerk
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.before = set(below(os.getpid()))

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 60) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self) -> None:
        self.run(self.engine.start(self.clerk.url))

    def stop(self) -> None:
        self.run(self.engine.stop())

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def workers(self) -> set[str]:
        try:
            return self.run(self.engine.workers())
        except EngineDown:
            return set()

    def worker(self) -> str:
        """The address of the one worker, once it is on the cluster."""
        (address,) = eventually(self.workers, 40)
        return address

    def joined(self) -> dict[str, Any]:
        """The introduction of the one worker, once it has joined."""
        return eventually(lambda: self.clerk.worker(self.worker()), 90)

    def ask(self, function: str, *arguments: Any, at: str | None = None, seconds: float = 20) -> Any:
        return self.run(self.engine.ask(function, list(arguments), at or self.worker(), seconds))

    def submit(self, attempt: str) -> None:
        self.run(self.engine.submit(attempt, self.worker(), {"CPU": 1}))

    def family(self) -> list[psutil.Process]:
        """Every process that the engine started, directly or not."""
        return [each for each in below(os.getpid()) if each not in self.before]

    def owners(self) -> list[psutil.Process]:
        """The processes `python -m workers dask|ray …`."""
        return [each for each in self.family() if words(each)[2:4] == ["workers", self.engine.name]]

    def head(self) -> psutil.Process:
        """The process that knows the cluster."""
        sign = {"dask": "scheduler", "ray": "gcs_server"}[self.engine.name]
        return next(each for each in self.family() if any(os.path.basename(word) == sign for word in words(each)))


def ray_folders(folder: Path) -> set[Path]:
    """The temporary folders of the head whose note is in `folder`."""
    return set(Path(SHORT).glob(f"{own_prefix(folder)}*"))


@contextlib.contextmanager
def rig_of(engine: Engine, folder: Path) -> Iterator[Rig]:
    clerk = Clerk()
    rig = Rig(engine, folder, clerk)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in THRIFTY.items():
            environment.setenv(name, value)
        try:
            yield rig
        finally:
            rig.close()
            clerk.close()
