"""A cluster that is not the server's: the engine comes and goes, and what runs there goes on."""

import contextlib
import json
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engines.base import EngineDown
from tests.chaos.acts import free_port, process
from tests.engines.clerk import HOLD, Clerk
from tests.engines.rig import NAMES, Rig, make
from tests.house import eventually


@contextlib.contextmanager
def dask_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    port = free_port()
    arguments = ["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    with process(arguments, folder / "scheduler.log"):
        yield f"tcp://127.0.0.1:{port}", ["workers", "dask", "--scheduler", f"tcp://127.0.0.1:{port}"]


@contextlib.contextmanager
def ray_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    note = folder / "head.json"
    with process(["workers.ray_head", "--cpus", "1", "--folder", str(folder)], folder / "head.log"):
        facts = eventually(lambda: note.exists() and (said := json.loads(note.read_text())).get("address") and said, 60)
        for name, value in facts["environment"].items():
            monkeypatch.setenv(name, value)
        yield facts["address"], ["workers", "ray", "--address", facts["address"]]


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}


@pytest.mark.parametrize("name", NAMES)
def test_an_attempt_goes_on_while_the_server_is_away_and_is_not_run_again(name, tmp_path, monkeypatch):
    clerk = Clerk()
    clerk.answer_to_claims = HOLD
    attempt = f"att_{secrets.token_hex(4)}"
    with CLUSTERS[name](tmp_path, monkeypatch) as (address, worker), contextlib.closing(clerk):
        first = Rig(make(name, tmp_path, address), tmp_path, clerk)
        first.start()
        assert first.engine.mode == "outside"
        with process([*worker, "--server", clerk.url, "--threads", "1"], tmp_path / "worker.log"):
            here = first.joined()["address"]
            first.submit(attempt)
            (nonce,) = eventually(lambda: clerk.claims.get(attempt))
            first.close()
            asked = clerk.asked[nonce]
            eventually(lambda: clerk.asked[nonce] > asked + 1)

            second = Rig(make(name, tmp_path, address), tmp_path, clerk)
            second.start()
            assert second.worker() == here
            second.submit(attempt)
            asked = clerk.asked[nonce]
            eventually(lambda: clerk.asked[nonce] > asked + 1)
            assert clerk.claims[attempt] == [nonce]
            assert second.ask("builtins:sum", [20, 22]) == 42
        eventually(lambda: not second.workers(), 5)
        assert second.engine.address
    with pytest.raises(EngineDown):
        second.run(second.engine.workers())
    second.close()


def test_a_worker_that_its_ray_node_can_never_hold_says_so(tmp_path, monkeypatch):
    with ray_cluster(tmp_path, monkeypatch) as (_, worker):
        arguments = [*worker, "--server", "http://127.0.0.1:9", "--threads", "3"]
        with process(arguments, tmp_path / "worker.log") as joining:
            assert joining.wait(timeout=60) == 2
    assert "started with 1 CPUs, and --threads asks for 3" in (tmp_path / "worker.log").read_text()


def test_a_driver_that_still_looks_for_its_ray_cluster_ends_with_its_server():
    command = [sys.executable, "-m", "app.engines.ray_driver", "--address", f"127.0.0.1:{free_port()}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        time.sleep(3)
        assert driver.poll() is None
        driver.stdin.close()
        assert driver.wait(timeout=20) == 0


def test_a_worker_that_finds_no_ray_cluster_can_be_stopped(tmp_path):
    arguments = ["workers", "ray", "--address", f"127.0.0.1:{free_port()}", "--server", "http://127.0.0.1:9"]
    with process(arguments, tmp_path / "worker.log") as worker:
        time.sleep(3)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=10) == 0
