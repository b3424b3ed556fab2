"""The hosts of each module, and why there are none where they cannot be made; and clients of the `cluster` that it makes of them."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Client, Cluster, hosts
from tests.cluster.namespaces import possible
from tests.training.yard import Trainers


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three hosts on which nothing runs yet."""
    if reason := possible():
        pytest.skip(reason)
    with hosts(tmp_path_factory.mktemp("hosts")) as cluster:
        yield cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Client]:
    """A client of the module's `cluster`."""
    with cluster.api() as api:
        yield api


@pytest.fixture
def trainers(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Trainers]:
    """One that trains, on the module's `ENGINE`."""
    trainers = Trainers(cluster, request.module.ENGINE)
    yield trainers
    trainers.api.close()
