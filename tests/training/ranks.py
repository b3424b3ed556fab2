"""Real ranks for tests: forked from one warm nursery, meeting at a real store, heard on their pipes."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workers.contract import TrainingParams
from workers.nursery_client import Ending, Nursery, Piece
from workers.training.metrics import read
from workers.training.rules import DEFAULT_ALLOW, Resolved
from workers.training.spec import RankSpec

TOYS = "tests.training.rank_toys"


@dataclass
class Run:
    """What a set of ranks did."""

    folder: Path
    ends: list[Ending]
    heard: list[list[dict[str, Any]]]
    """The messages of each rank."""

    @property
    def value(self) -> dict[str, Any]:
        """What rank 0 returned, after all ranks ended in good order."""
        assert all(end.code == 0 for end in self.ends), [(end.code, end.answer) for end in self.ends]
        return self.ends[0].answer["value"]

    def problem(self, rank: int = 0) -> dict[str, Any]:
        answer = self.ends[rank].answer
        assert answer
        assert answer["type"] == "raised", answer
        return answer["problem"]

    def events(self, kind: str, rank: int = 0) -> list[dict[str, Any]]:
        return [message["data"] for message in self.heard[rank] if message["type"] == kind]

    def metric(self, name: str) -> list[tuple[int, float]]:
        return [(each["step"], each["value"]) for each in self.events("metric") if each["name"] == name]

    def column(self, name: str) -> list[tuple[int, float]]:
        return [(row["step"], row[name]) for row in read(self.folder / "metrics.csv") if name in row]

    def log(self, rank: int = 0) -> str:
        return (self.folder / f"rank-{rank}.log").read_text()


@dataclass
class Started:
    """Ranks that run."""

    folder: Path
    keeper: Piece
    pieces: list[Piece]
    threads: list[threading.Thread]
    run: Run

    @property
    def stop_file(self) -> Path:
        return self.folder / ".stop"

    def finished(self, seconds: float = 100) -> Run:
        for thread in self.threads:
            thread.join(seconds)
            assert not thread.is_alive(), "a rank did not end"
        self.keeper.kill()
        return self.run


@dataclass
class Ranks:
    """Forks ranks, from one nursery and each into a folder of its own."""

    nursery: Nursery
    home: Path
    count: int = 0

    def start(
        self,
        config: dict[str, Any],
        world: int = 1,
        *,
        mode: str = "trainer",
        stage: str = "fit",
        precision: str = "32-true",
        params: dict[str, Any] | None = None,
        call: str = "workers.training.rank:run",
        **about: Any,
    ) -> Started:
        self.count += 1
        folder = self.home / f"attempt-{self.count}"
        folder.mkdir()
        keeper, port = self._store()
        strategy = "ddp" if world > 1 else "single_device"
        resolved = Resolved(
            accelerator="cpu", devices=world, num_nodes=1, strategy=strategy, precision=precision, world_size=world
        )
        heard: list[list[dict[str, Any]]] = [[] for _ in range(world)]
        ends: list[Any] = [None] * world
        pieces, threads = [], []
        for rank in range(world):
            spec = RankSpec(
                attempt=f"att_{self.count}",
                job="job_1",
                params=TrainingParams(mode=mode, stage=stage, config=config, **(params or {})),
                resolved=resolved,
                folder=str(folder),
                rank=rank,
                local_rank=rank,
                node_rank=0,
                local_world_size=world,
                master_address="127.0.0.1",
                master_port=port,
                threads=1,
                seed=1,
                allow=[*DEFAULT_ALLOW, TOYS],
                stop_file=str(folder / ".stop"),
                **about,
            )
            log = str(folder / f"rank-{rank}.log")
            piece = self.nursery.fork(call, [spec.model_dump(mode="json")], log)

            def follow(rank: int = rank, piece: Any = piece) -> None:
                ends[rank] = piece.hear(heard[rank].append)

            thread = threading.Thread(target=follow, daemon=True)
            thread.start()
            pieces.append(piece)
            threads.append(thread)
        return Started(folder, keeper, pieces, threads, Run(folder, ends, heard))

    def _store(self) -> tuple[Piece, int]:
        """A store of the run's own."""
        told: queue.SimpleQueue[int] = queue.SimpleQueue()
        keeper = self.nursery.fork(f"{TOYS}:keep", [])
        threading.Thread(
            target=keeper.hear, args=[lambda message: told.put(message["data"]["port"])], daemon=True
        ).start()
        return keeper, told.get(timeout=60)

    def run(self, config: dict[str, Any], world: int = 1, **about: Any) -> Run:
        return self.start(config, world, **about).finished()


def config(
    model: str = "Plain", data: str = "Numbers", init: Any = None, rows: Any = None, **trainer: Any
) -> dict[str, Any]:
    """A configuration of the toys: `init` of the model, `rows` of the data, and the Trainer's arguments."""
    told = {"max_epochs": 2, "log_every_n_steps": 1, "enable_model_summary": False, **trainer}
    return {
        "trainer": told,
        "model": {"class_path": f"{TOYS}.{model}", "init_args": init or {}},
        "data": {"class_path": f"{TOYS}.{data}", "init_args": rows or {}},
    }


_made: list[Ranks] = []


@pytest.fixture(scope="session", name="ranks")
def shared_ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """One nursery for all modules that import this: it takes seconds to warm, and a fork takes none."""
    if not _made:
        nursery = Nursery([f"{TOYS}:warm"], {"CUDA_VISIBLE_DEVICES": ""})
        _made.append(Ranks(nursery, tmp_path_factory.mktemp("ranks")))
        nursery.wait_ready(120)
    assert _made[0].nursery.ready.is_set()
    yield _made[0]
    _made[0].nursery.close()
