"""Clusters with an open door are told of, loudly; those that ask who is there, by TLS or by a token, are not."""

import subprocess
import sys

import dask
import pytest

from app.capabilities.routes import _worker_view
from app.db.tables import WorkerRow
from app.engines import doors
from app.engines.dask import SCHEDULER_SETTINGS
from app.settings import Settings
from tests.chaos.acts import SMALL, free_port, process, scheduler_at
from tests.engines.certificates import OPENSSL, tls_environment
from tests.engines.rig import make, rig_of
from tests.house import House, eventually, running
from workers.contract import Join

OPEN = [
    "tcp://10.0.0.5:8786",
    "tcp://scheduler:8786",
    "tcp://[fd00::5]:8786",
    "tcp://0.0.0.0:8786",
]
CLOSED = [
    "tcp://127.0.0.1:8786",
    "tcp://localhost:8786",
    "tcp://[::1]:8786",
    "tls://10.0.0.5:8786",
    "tls://scheduler:8786",
]


@pytest.mark.parametrize("address", OPEN)
def test_a_scheduler_that_anybody_reaches_is_warned_about(address):
    [warning] = doors.of_dask(address)
    assert address in warning
    assert "whoever reaches its port can run code" in warning
    assert "tls://" in warning


@pytest.mark.parametrize("address", CLOSED)
def test_one_that_nobody_else_reaches_or_that_asks_for_certificates_is_not(address):
    assert doors.of_dask(address) == []


def test_a_ray_head_off_loopback_is_warned_about_unless_it_asks_for_a_token():
    for head in ("10.0.0.5:6379", "head:6379", "[fd00::5]:6379"):
        [warning] = doors.of_ray(head, {})
        assert head in warning
        assert "RAY_AUTH_MODE=token" in warning
        assert doors.of_ray(head, {"RAY_AUTH_MODE": "token"}) == []
    for head in ("127.0.0.1:6379", "[::1]:6379", "localhost:6379", "auto"):
        assert doors.of_ray(head, {}) == []


def test_the_server_says_so_when_it_starts(tmp_path):
    """The scheduler is not even there: the warning does not wait for it."""
    address = f"tcp://192.0.2.7:{free_port()}"  # a network for documentation, on which nobody is
    house = House(tmp_path / "home", {"TIDEMILL_DASK_SCHEDULER": address}, port=free_port())
    house.url = f"http://127.0.0.1:{house.port}"
    words = tmp_path / "words"
    arguments = ["app", "--port", str(house.port), "--home", str(house.home)]
    with process(arguments, words, **house.environment), house.api() as api:
        eventually(lambda: "WARNING" in words.read_text() and "asks nobody who they are" in words.read_text(), 40)
        [engine] = eventually(lambda: live(api) and api.get("/capabilities").json()["engines"])
        assert engine["mode"] == "outside"
        assert address in engine["warnings"][0]


def test_an_outside_scheduler_that_soon_gives_a_connection_up_is_warned_about(tmp_path):
    """Dask's own patience is 30 s; ours, of the scheduler that we start and of our own connections, outlasts a cut of a minute."""
    assert doors.of_hasty("tcp://127.0.0.1:1", 300) == []
    port = free_port()
    with scheduler_at(port, tmp_path), rig_of(make("dask", tmp_path, f"tcp://127.0.0.1:{port}"), tmp_path) as rig:
        rig.start()
        [warning] = eventually(lambda: rig.engine.warnings, 40)
        assert "whose network is cut for 30 s" in warning
        assert dask.config.get("distributed.comm.timeouts.tcp") == "300s"
    assert SCHEDULER_SETTINGS["DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP"] == "300s"
    assert Settings().worker_silence_seconds > doors.CUT_SECONDS


@pytest.mark.parametrize(("shares", "shown"), [({}, "shared"), ({"shares_storage": False}, "http")])
def test_a_worker_shows_how_it_comes_by_files(shares, shown):
    join = Join(
        id="wk", engine="dask", address="tcp://10.0.0.7:1", host="h", pid=1, resources={"CPU": 1}, threads=1, memory_bytes=1,
        cpu={}, gpus=[], versions={}, probes=[], speed={}, **shares,
    )  # fmt: skip
    row = WorkerRow(
        id="wk", engine="dask", address=join.address, resources={"CPU": 1}, facts=join.model_dump(mode="json")
    )
    assert _worker_view(row, 60).storage == shown


def live(api) -> bool:
    import httpx

    try:
        return api.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.skipif(OPENSSL is None, reason="no openssl here to make certificates with")
def test_a_cluster_over_tls_runs_jobs_and_lets_in_nobody_without_a_certificate(tmp_path):
    tls = tls_environment(tmp_path)
    port = free_port()
    scheduler = f"tls://127.0.0.1:{port}"
    serving = ["dask", "scheduler", "--host", scheduler, "--no-dashboard"]
    house = House(tmp_path / "home", {"TIDEMILL_DASK_SCHEDULER": scheduler, **tls}, port=free_port())
    house.url = f"http://127.0.0.1:{house.port}"
    joining = ["workers", "dask", "--scheduler", scheduler, "--server", house.url, "--threads", "1"]
    with (
        process(serving, tmp_path / "scheduler.log", **tls),
        process(joining, tmp_path / "worker.log", **tls),
        running(house),
        house.api() as api,
    ):
        [engine] = api.get("/capabilities").json()["engines"]
        assert (engine["status"], engine["warnings"]) == ("up", [])
        [worker] = engine["workers"]
        assert worker["address"].startswith("tls://127.0.0.1:")
        assert worker["storage"] == "shared"
        for backend in ("cpu", "dask"):
            job = api.submit({**SMALL, "execution": {"backend": backend, "fallback": "forbid"}}, Prefer="wait=60")
            assert (job["state"], job["plan"]["backend"]) == ("succeeded", backend)
        assert "Traceback" not in house.words()
        stranger = (
            "from distributed import Client\n"
            "from distributed.security import Security\n"
            f"Client({scheduler!r}, timeout=5, security=Security(tls_ca_file={tls['DASK_DISTRIBUTED__COMM__TLS__CA_FILE']!r}))"
        )
        done = subprocess.run([sys.executable, "-c", stranger], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
