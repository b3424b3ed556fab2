"""A Dask scheduler of nobody's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.acts import free_port, process


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    arguments = ["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    with process(arguments, tmp_path / "scheduler.log"):
        yield f"tcp://127.0.0.1:{port}"
