"""A control plane of the test's own, on a real database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """With an embedded cluster: it dies with its server."""
    yard = Yard(tmp_path / "home")
    yield yard
    yard.check()
    yard.close()


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Yard]:
    """With a cluster that outlives the server."""
    yard = Yard(tmp_path / "home", mode="outside")
    yield yard
    yard.check()
    yard.close()
