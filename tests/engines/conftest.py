"""One cluster of each engine for the tests of the port. They may hurt it: whoever needs a worker waits for one."""

from collections.abc import Iterator

import pytest

from tests.engines.rig import NAMES, Rig, make, rig_of


@pytest.fixture(scope="module", params=NAMES)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp(request.param)
    with rig_of(make(request.param, folder), folder) as rig:
        rig.start()
        yield rig
