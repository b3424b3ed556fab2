"""A worker calls another one of its cluster: what the supervisors of a training job do, on each engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engines.base import Engine
from tests.engines.rig import NAMES, Rig, rig_of
from tests.house import eventually

INSIDE = "tests.engines.inside_calls"


def two_workers(name: str, folder: Path) -> Engine:
    if name == "dask":
        from app.engines.dask import DaskEngine

        return DaskEngine("embedded", folder, 2, 1, None)
    from app.engines.ray import RayEngine

    return RayEngine("embedded", folder, 2, 1, None)


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp(request.param)
    with rig_of(two_workers(request.param, folder), folder) as rig:
        rig.start()
        yield rig


def both(rig: Rig) -> tuple[str, str]:
    """The addresses of both workers, once they have joined."""
    eventually(lambda: len([each for each in rig.workers() if rig.clerk.worker(each)]) == 2, 90)
    here, there = sorted(rig.workers())
    return here, there


def test_a_call_is_answered_by_the_worker_that_was_called(pair):
    here, there = both(pair)
    pid = pair.clerk.worker(there)["pid"]
    assert pair.ask(f"{INSIDE}:call", there, "os:getpid", [], at=here) == pid
    assert pair.ask(f"{INSIDE}:call", here, "os:getpid", [], at=here) == pair.clerk.worker(here)["pid"]


def test_what_a_call_raises_comes_back_in_words(pair):
    here, there = both(pair)
    kind, words = pair.ask(f"{INSIDE}:call", there, "builtins:int", ["forty-two"], at=here)
    assert kind == "CallFailed"
    assert "ValueError: invalid literal" in words


def test_a_call_of_nobody_finds_the_worker_gone(pair):
    here, _ = both(pair)
    nobody = {"dask": "tcp://127.0.0.1:1", "ray": "ray://wk_0000000000000000"}[pair.engine.name]
    assert pair.ask(f"{INSIDE}:call", nobody, "os:getpid", [], at=here)[0] == "WorkerGone"


def test_a_worker_knows_by_which_address_the_others_reach_it(pair):
    here, _ = both(pair)
    assert pair.ask(f"{INSIDE}:reached_by", at=here) == "127.0.0.1"


def test_a_call_of_a_worker_that_is_killed_ends_soon(pair):
    here, there = both(pair)
    kind, seconds = pair.ask(f"{INSIDE}:call_while_it_is_killed", there, at=here, seconds=60)
    assert kind == "WorkerGone"
    assert seconds < 5
