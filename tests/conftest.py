"""Fixtures of the whole suite: one server with its cluster for all tests that do no harm to it, and which files run together, and when."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house import Api, BothEngines, House, running

TOGETHER: tuple[tuple[str, ...], ...] = (
    # those that need the server of all
    ("api/", "test_whole_stack.py", "test_command_line.py", "test_readme.py", "chaos/test_leaving.py"),
    # workers without the server's folder
    ("storage/",),
    # hosts and containers of their own
    ("cluster/",),
    ("docker/",),
    # kernels of the pytest process, which a first run compiles
    ("tiles/",),
    ("matrix_profile/",),
    ("chaos/test_spread.py",),
    ("chaos/test_tiles.py",),
    # one nursery of ranks
    (
        "training/test_rank_failures.py",
        "training/test_rank_going_on.py",
        "training/test_rank_stages.py",
        "training/test_rank.py",
        "training/test_conductor.py",
    ),
    ("training/test_on_dask.py",),
    ("training/test_on_ray.py",),
    # one server with both engines
    ("test_families.py", "api/test_two_engines.py"),
    ("engines/test_port.py",),
    ("plots/",),
    ("chaos/test_outside_cluster.py",),
    ("chaos/test_slots.py",),
    ("engines/test_head_back.py",),
    ("engines/test_doors.py",),
    ("workers/test_commands.py", "workers/test_ray_command.py"),
    ("workers/test_fleet.py",),
    ("chaos/test_workers.py",),
    ("workers/test_cuda_jobs.py",),
    ("chaos/test_restarts.py",),
    ("engines/test_outside.py",),
    ("engines/test_houses.py",),
    ("engines/test_calls.py",),
    ("workers/test_probe.py",),
    # one nursery of readers
    ("training/test_check.py", "training/test_parsing.py"),
    ("engines/test_failed_starts.py",),
    ("workers/test_cuda_driver.py",),
)
"""Rooms of the suite: files, or whole folders. Those of one room run one after the other in one process, for they share what takes long to
start. The longest rooms begin first, so that none is left for one process when the others have finished. Whatever is not named here is
short and comes last, each file a room of its own."""
PLACES = {name: (number, within) for number, room in enumerate(TOGETHER) for within, name in enumerate(room)}


def file_of(nodeid: str) -> str:
    """A test's file, from this folder."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def place_of(nodeid: str) -> tuple[int, int]:
    """The number of a test's room, and its file's place in there; a file goes before its folder."""
    file = file_of(nodeid)
    folder = file.partition("/")[0] + "/"
    return PLACES.get(file) or PLACES.get(folder) or (len(TOGETHER), 0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, by rooms and in their order."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Rooms(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            number, _ = place_of(nodeid)
            return f"room {number}" if number < len(TOGETHER) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # by the number of tests, which would have the longest files last
    return Rooms(config, log)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The suite's server, with two workers of one thread each."""
    home = tmp_path_factory.mktemp("house") / "home"
    environment = {
        "TIDEMILL_WORKERS": "2",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_MAX_UPLOAD_BYTES": str(8 << 20),
        "TIDEMILL_ALLOW_SOURCE_UPLOAD": "true",
        "TIDEMILL_MAX_SOURCE_BYTES": str(1 << 20),
    }
    with running(House(home, environment)) as house:
        yield house


@pytest.fixture(scope="session")
def api(house: House) -> Iterator[Api]:
    with house.api() as api:
        yield api


@pytest.fixture(scope="session")
def both_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothEngines]:
    """One for all: starting four workers and Ray takes half a minute."""
    both = BothEngines.at(tmp_path_factory.mktemp("both") / "home")
    with running(both.house):
        both.note()
        yield both


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A HOME of the test's own, for servers it will hurt."""
    return tmp_path / "home"
