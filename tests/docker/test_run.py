"""The services of `compose.yaml` run, each its very command, environment and health check; and a job of every kind through them."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.docker.boxes import impossible
from tests.docker.compose import load, services
from tests.docker.stack import API_OUTSIDE, Stack, stack_of
from tests.house import Api, eventually

reason = impossible()
pytestmark = [
    pytest.mark.skipif(reason is not None, reason=str(reason)),
    pytest.mark.timeout(600),
    pytest.mark.allow_hosts([API_OUTSIDE]),
]

SERVICES = services()
PLAIN = ["scheduler", "api", "worker"]
"""Those of no profile."""
ROWS, WINDOW = 300, 20
TABLE = np.random.default_rng(5).standard_normal((ROWS, 3)).cumsum(axis=0)
CHILDREN = ("workers.datasets.reading", "workers.plots.draw", "workers.matrix_profile.so_far")
"""What the API's short-lived children import, one of them each."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_of(SERVICES, list(load()["networks"]), tmp_path_factory.mktemp("stack")) as stack:
        stack.up({"worker": 2}, PLAIN)
        yield stack


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.make_key()


@pytest.fixture
def outside(stack: Stack) -> Iterator[Api]:
    with stack.outside() as api:
        yield api


@pytest.fixture
def api(outside: Api, key: str) -> Api:
    outside.headers["Authorization"] = f"Bearer {key}"
    return outside


@pytest.fixture(scope="module")
def kept() -> dict[str, str]:
    """The dataset, once it is there."""
    return {}


@pytest.fixture
def dataset(api: Api, kept: dict[str, str]) -> str:
    if "id" not in kept:
        text = "\n".join(["a,b,c", *(",".join(map(repr, map(float, row))) for row in TABLE)])
        answer = api.post("/datasets", files={"file": ("walks.csv", text.encode())})
        assert answer.status_code == 201, answer.text
        kept["id"] = answer.json()["id"]
    return kept["id"]


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """What is started meanwhile sees a machine of one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def a(dataset: str, column: str) -> dict[str, Any]:
    return {"dataset": dataset, "column": column}


def everything(dataset: str) -> dict[str, dict[str, Any]]:
    """A job of every kind that is submitted as one."""
    one, two, three = (a(dataset, column) for column in "abc")
    model = {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 4}}
    windows = {"class_path": "workers.training.data.SeriesWindows", "init_args": {"series": one, "context": 16}}
    gang = {"accelerator": "cpu", "devices": 1, "num_nodes": 2, "strategy": "ddp", "max_epochs": 1}
    return {
        "matrix_profile": {"series": one, "window": WINDOW},
        "multidimensional_profile": {"series": [one, two, three], "window": WINDOW},
        "mpdist": {"a": one, "b": two, "window": WINDOW},
        "consensus_motif": {"series": [one, two, three], "window": WINDOW},
        "pan_profile": {"series": one, "min_window": WINDOW, "max_window": WINDOW + 2},
        "training": {"config": {"trainer": gang, "model": model, "data": windows}},
    }


def ended(api: Api, job: dict[str, Any]) -> dict[str, Any]:
    job = api.until(job["id"], "succeeded", "failed", "cancelled", seconds=240)
    assert job["state"] == "succeeded", job["error"]
    return job


def test_a_job_can_run_as_soon_as_all_are_healthy(stack, outside):
    """The check of a worker says so only once the server has answered it."""
    eventually(lambda: outside.get("/health/ready").status_code == 200, 15)


def test_nobody_is_served_without_a_key(outside):
    assert outside.get("/jobs").status_code == 401
    assert outside.get("/health/live").status_code == 200


def test_a_foreign_name_is_not_answered(api):
    assert api.get("/capabilities", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("kind", everything(""))
def test_a_job_of_every_kind(api, dataset, kind):
    job = ended(api, api.submit({"kind": kind, "params": everything(dataset)[kind]}))
    if kind == "training":
        assert job["result"]["world_size"] == 2
    else:
        assert api.get(f"/jobs/{job['id']}/plot").headers["Content-Type"] == "image/png"


def test_the_seventh_kind_is_a_probe(api):
    answer = api.post("/capabilities/probes", json={"check": "cpu"})
    assert answer.status_code == 202, answer.text
    assert ended(api, answer.json())["kind"] == "probe"


def test_a_job_spread_over_both_workers_is_right(api, dataset):
    execution = {"backend": "dask", "fallback": "forbid"}
    params = {"series": a(dataset, "b"), "window": WINDOW}
    job = ended(api, api.submit({"kind": "matrix_profile", "params": params, "execution": execution}))
    assert job["plan"]["workers"] == 2
    found = np.array(api.get(f"/jobs/{job['id']}/result").json()["distances"], dtype=float)
    truth = oracle.matrix_profile(TABLE[:, 1], WINDOW).distances[:, 0]
    np.testing.assert_allclose(found, truth, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", PLAIN)
def test_a_service_is_as_closed_as_the_file_says(stack, name):
    container = stack.of(name)[0]
    said = container.run(["sh", "-c", "id -u; grep -h -e CapBnd -e NoNewPrivs /proc/self/status; touch /here"], 20)
    assert said.stdout.split() == ["10001", "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert "Read-only file system" in said.stderr
    listening = container.run(["ss", "-Hltn"], 20).stdout.split()[3::5]
    inner = (f"{container.addresses['cluster']}:", "127.0.0.1:")
    assert all(each.startswith(inner) for each in listening) or (name, listening) == ("api", ["0.0.0.0:8000"])


def test_the_api_has_run_all_this_without_what_computes(stack):
    """What its image does not install is not there where it runs."""
    heavy = ["torch", "lightning", "stumpy", "jsonargparse", "ray", "numba_cuda"]
    look = f"from importlib.util import find_spec as f; print(*(n for n in {heavy} if f(n)))"
    assert [stack.of(name)[0].run(["python", "-c", look], 20).stdout.split() for name in PLAIN] == [[], [], heavy[:4]]


@pytest.mark.parametrize("module", CHILDREN)
def test_what_the_apis_children_need_is_in_its_image(stack, module):
    imported = stack.of("api")[0].run(["python", "-c", f"import {module}"], 60)
    assert imported.returncode == 0, imported.stderr


def test_what_a_worker_computed_is_with_the_server_and_nowhere_else(stack, api, dataset):
    volumes = {path.name for path in (stack.folder / "volumes").iterdir()}
    assert volumes == {"data", "numba", "worker-1-cache", "worker-2-cache"}
    assert (stack.folder / "volumes" / "data" / "tidemill.db").exists()
    assert all(
        set(service.volumes) == {"/cache", "/cache/numba"} for name, service in SERVICES.items() if "worker" in name
    )


@pytest.mark.parametrize(("name", "elsewhere"), [("api", "worker"), ("scheduler", "api"), ("worker", "api")])
def test_a_check_fails_where_its_service_does_not_run(stack, name, elsewhere):
    assert stack.of(elsewhere)[0].run(SERVICES[name].check, 20).returncode == 1


def test_a_worker_that_the_server_does_not_answer_is_unhealthy_and_well_again_afterwards(stack):
    (server,) = stack.of("api")
    worker = stack.of("worker")[0]
    pause = ["nsenter", "--target", str(server.first), "--pid", "--mount", "--root", "pkill", "-f"]
    subprocess.run([*pause, "-STOP", "python -m app"], check=True)
    try:
        eventually(lambda: not worker.healthy(), 45, pause=1)
    finally:
        subprocess.run([*pause, "-CONT", "python -m app"], check=True)
    eventually(worker.healthy, 45, pause=1)


def test_the_command_of_the_gpu_profile_makes_a_worker_also_where_there_is_no_gpu(stack, api):
    with on_one_core():  # for which kernels are compiled already
        stack.up({}, ["worker-gpu"])
    (engine,) = api.get("/capabilities").json()["engines"]
    hosts = {worker["host"]: worker for worker in engine["workers"]}
    assert set(hosts) == {"worker-1", "worker-2", "worker-gpu-1"}
    assert hosts["worker-gpu-1"]["resources"]["GPU"] == len(hosts["worker-gpu-1"]["gpus"])
    # It sees what its image would have, of what is installed here at all.
    assert ("numba-cuda" in hosts["worker-gpu-1"]["versions"]) == (find_spec("numba_cuda") is not None)


def test_every_service_ends_in_order_within_its_time(stack):
    """The last test of this stack."""
    left = {container.name: container for container in stack.containers}
    assert set(left) == {"scheduler-1", "api-1", "worker-1", "worker-2", "worker-gpu-1"}
    assert stack.down() == dict.fromkeys(left, 0)
