"""A Dask scheduler of nobody's, and a house with two workers of either engine, to be hurt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.acts import dask_scheduler
from tests.chaos.spreading import workers_up
from tests.house import House, eventually, running


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    with dask_scheduler(tmp_path) as address:
        yield address


@pytest.fixture(scope="module", params=["dask", "ray"])
def hurt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    environment = {
        "TIDEMILL_ENGINE": request.param,
        "TIDEMILL_WORKERS": "2",
        "TIDEMILL_WORKER_THREADS": "1",
        "TIDEMILL_WORKER_SILENCE_SECONDS": "4",
    }
    with running(House(tmp_path_factory.mktemp("spread") / "home", environment)) as house:
        yield house


@pytest.fixture
def two(hurt: House) -> House:
    """The house with both workers up and free."""
    with hurt.api() as api:
        eventually(lambda: len(workers_up(api)) == 2, 60)
    return hurt
