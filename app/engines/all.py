"""The clusters of one server, by name: one for each that `TIDEMILL_ENGINE` names, in that order."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.engines.base import Engine, EngineDown
from app.settings import Settings


class Engines(Mapping[str, Engine]):
    """Engines by name. A worker's row says in `engine` whose it is."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = {engine.name: engine for engine in engines}

    def __getitem__(self, name: str) -> Engine:
        return self._engines[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._engines)

    def __len__(self) -> int:
        return len(self._engines)

    def embedded(self, name: str) -> bool:
        """Whether the workers of this engine die with the server. Those of an engine that is named no longer did."""
        return name not in self or self[name].mode == "embedded"

    def up(self) -> set[str]:
        """The engines that can be given work now."""
        return {name for name, engine in self.items() if engine.address is not None}

    async def start(self, server_url: str) -> None:
        """Begin to bring all of them up."""
        for engine in self.values():
            await engine.start(server_url)

    async def present(self) -> dict[str, set[str] | EngineDown]:
        """For each engine the addresses of its workers, or why it cannot tell."""

        async def ask(engine: Engine) -> set[str] | EngineDown:
            try:
                return await engine.workers()
            except EngineDown as down:
                return down

        answers = await asyncio.gather(*map(ask, self.values()))
        return dict(zip(self, answers, strict=True))

    async def stop(self) -> None:
        """Stop all of them, each as far as it can be. Raises the first fault once all have been asked."""
        ends = await asyncio.gather(*(engine.stop() for engine in self.values()), return_exceptions=True)
        for fault in ends:
            if isinstance(fault, BaseException):
                raise fault


def build_engines(settings: Settings, home: Path) -> Engines:
    """The engines that the settings name. Only these are imported: Ray need not be installed where nobody asks for it."""
    names = [name.strip() for name in settings.engine.split(",")]
    return Engines([BUILDERS[name](settings, home, workers_each(settings)) for name in names])


def workers_each(settings: Settings) -> int:
    """Workers of each embedded cluster. Unless said, two clusters share the cores that one would have."""
    embedded = [where == "embedded" for where in (settings.dask_scheduler, settings.ray_address)]
    shared = "," in settings.engine and all(embedded) and "workers" not in settings.model_fields_set
    return max(1, settings.workers // 2) if shared else settings.workers


def _dask(settings: Settings, home: Path, workers: int) -> Engine:
    from app.engines.dask import DaskEngine

    return DaskEngine(settings.dask_scheduler, home / "dask", workers, settings.worker_threads, settings.join_token)


def _ray(settings: Settings, home: Path, workers: int) -> Engine:
    from app.engines.ray import RayEngine

    return RayEngine(settings.ray_address, home / "ray", workers, settings.worker_threads, settings.join_token)


BUILDERS: Final[Mapping[str, Callable[[Settings, Path, int], Engine]]] = {"dask": _dask, "ray": _ray}
