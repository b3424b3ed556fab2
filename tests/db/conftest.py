"""A database of the test's own, with its writer running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "home")
    yield desk
    desk.close()
