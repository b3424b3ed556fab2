"""Fixtures of the whole suite: one server with its cluster for all tests that do no harm to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import Api, House, running


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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A HOME of the test's own, for servers it will hurt."""
    return tmp_path / "home"
