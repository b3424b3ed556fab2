"""The ray profile of `compose.yaml`, with `docker/ray.yaml` over it, run as in `test_run.py`: a job on each of the two clusters."""

from collections.abc import Iterator

import pytest

from tests.docker.boxes import impossible
from tests.docker.compose import COMPOSE, RAY, load, services
from tests.docker.stack import API_OUTSIDE, Stack, stack_of
from tests.house import Api, eventually

reason = impossible()
pytestmark = [
    pytest.mark.skipif(reason is not None, reason=str(reason)),
    pytest.mark.timeout(600),
    pytest.mark.allow_hosts([API_OUTSIDE]),
]

WAVE = [float((i * i) % 23) for i in range(200)]
ALL = ["scheduler", "api", "worker", "ray-head", "ray-worker"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("ray")
    with stack_of(services(COMPOSE, RAY), list(load()["networks"]), folder) as stack:
        stack.up({}, ALL)
        yield stack


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.make_key()


@pytest.fixture
def api(stack: Stack, key: str) -> Iterator[Api]:
    with stack.outside() as api:
        api.headers["Authorization"] = f"Bearer {key}"
        yield api


def profile_on(api: Api, backend: str) -> None:
    body = {"kind": "matrix_profile", "params": {"series": {"values": WAVE}, "window": 20}}
    body["execution"] = {"backend": backend, "fallback": "forbid"}
    job = api.until(api.submit(body)["id"], "succeeded", "failed", seconds=120)
    assert (job["state"], job["plan"]["backend"]) == ("succeeded", backend), job["error"]


def hosts(api: Api) -> dict[str, list[str]]:
    engines = api.get("/capabilities").json()["engines"]
    return {engine["name"]: [worker["host"] for worker in engine["workers"]] for engine in engines}


def test_a_profile_on_each_cluster(api):
    assert hosts(api) == {"dask": ["worker-1"], "ray": ["ray-worker-1"]}
    for backend in ("ray", "dask"):
        profile_on(api, backend)


def test_who_has_not_the_token_is_not_on_the_cluster(stack):
    words = ["python", "-m", "ray.scripts.scripts", "status", "--address", "ray-head:6379"]
    head = stack.of("ray-head")[0]
    assert head.run(words, 60).returncode == 0
    assert head.run(["env", "RAY_AUTH_TOKEN_PATH=/etc/passwd", *words], 60).returncode != 0


def test_a_head_that_is_started_again_gets_its_nodes_back(stack, api):
    """Each container keeps a node up; the worker is a new one."""

    def workers() -> set[str]:
        return {worker["id"] for worker in api.get("/capabilities").json()["engines"][1]["workers"]}

    before = workers()
    stack.restart(stack.of("ray-head")[0])
    eventually(lambda: workers() and not workers() & before, 240, pause=1)
    profile_on(api, "ray")


def test_every_service_ends_in_order_within_its_time(stack):
    """The last test of this stack."""
    assert stack.down() == dict.fromkeys([f"{name}-1" for name in ALL], 0)
