"""A machine with a GPU, seen through the probe and through HTTP."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tests import oracle
from tests.house import Api, House, eventually, running

SERIES = np.random.default_rng(7).standard_normal(500).cumsum()


def test_the_probe_executes_and_meets_require_cuda(gpus):
    done = subprocess.run(
        [sys.executable, "-m", "workers.probe", "--check", "cuda", "--require-cuda"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"on {len(gpus)} device(s)" in done.stdout


@pytest.fixture(scope="module", params=["dask", "ray"])
def api(gpus, request, tmp_path_factory) -> Iterator[Api]:
    home = tmp_path_factory.mktemp(request.param) / "home"
    with running(House(home, {"TIDEMILL_ENGINE": request.param})) as house, house.api() as api:
        eventually(lambda: api.get("/health/ready").status_code == 200, 120)
        yield api


def test_capabilities_name_the_devices_and_what_runs_on_them(api, gpus):
    told = api.get("/capabilities").json()
    (worker,) = [w for engine in told["engines"] for w in engine["workers"] if w["gpus"]]
    assert [gpu["uuid"] for gpu in worker["gpus"]] == [gpu["uuid"] for gpu in gpus]
    assert worker["resources"]["GPU"] == len(gpus)
    for operation in told["operations"]:
        cuda = operation["backends"]["cuda"]
        if cuda["functions"]:
            assert (cuda["available"], cuda["evidence"]) == (True, "executed")


def test_a_job_that_must_run_on_a_gpu_does(api):
    job = api.submit(
        {
            "kind": "matrix_profile",
            "params": {"series": {"values": SERIES.tolist()}, "window": 50},
            "execution": {"backend": "cuda", "fallback": "forbid"},
        },
        Prefer="wait=60",
    )
    assert job["state"] == "succeeded", job
    assert job["plan"]["device"].startswith("cuda:")
    assert job["plan"]["acceleration_verified"] is True
    result = api.get(job["links"]["result"]).json()
    assert result["provenance"]["function"] == "stumpy.gpu_stump"
    np.testing.assert_allclose(result["distances"], oracle.matrix_profile(SERIES, 50).distances[:, 0], atol=1e-6)
