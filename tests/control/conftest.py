"""A control plane on a real database, with a Dask cluster and a Ray cluster whose workers the tests play."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path / "home", ray="embedded")
    yield yard
    yard.check()
    yard.close()
