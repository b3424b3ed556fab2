"""A Ray head that is not the server's, gone under a running job and started again where it was: all find it by themselves."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.acts import computing, ends, free_port, process, submit_long
from tests.house import House, eventually, running

TOKEN = "a-secret-for-joining"

AT_A_PORT = """
import sys
from workers import ray_head
port, any_port = sys.argv.pop(), ray_head.command
ray_head.command = lambda *about: [*any_port(*about), "--port", port]  # the last one counts
sys.exit(ray_head.main())
"""


@contextlib.contextmanager
def head_at(port: int, folder: Path):
    script, note = folder / "head.py", folder / "head.json"
    script.write_text(AT_A_PORT)
    with (folder / "head.log").open("ab") as words:
        arguments = [sys.executable, str(script), "--cpus", "1", "--folder", str(folder), str(port)]
        head = subprocess.Popen(arguments, stdout=words, stderr=words, cwd=Path.cwd(), env=environment())
    try:
        yield eventually(lambda: note.exists() and (said := json.loads(note.read_text())).get("address") and said, 60)
    finally:
        head.terminate()
        head.wait(timeout=30)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path.cwd())}


@pytest.mark.timeout(420)
def test_a_head_that_comes_back_is_found_again_with_its_workers_and_what_it_lost_runs_once_more(tmp_path):
    port = free_port()
    address = f"127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        with head_at(port, tmp_path) as facts:
            assert facts["address"] == address
            secrets = {**facts["environment"], "TIDEMILL_JOIN_TOKEN": TOKEN}
            house = House(
                tmp_path / "home",
                {"TIDEMILL_ENGINE": "ray", "TIDEMILL_RAY_ADDRESS": address, **secrets},
                port=free_port(),
            )
            house.url = f"http://127.0.0.1:{house.port}"
            joining = ["workers", "ray", "--address", address, "--server", house.url, "--threads", "1"]
            worker = stack.enter_context(process(joining, tmp_path / "worker.log", **secrets))
            stack.enter_context(running(house))
            api = stack.enter_context(house.api())
            (before,) = eventually(lambda: up(api), 90)
            job_id, dataset = submit_long(house, n=40_000, execution={"backend": "ray", "fallback": "forbid"})
            eventually(lambda: computing(api, job_id), 40)
        eventually(lambda: engine(api)["status"] == "down", 60)
        assert "cluster is not up" in api.get("/health/ready").json()["detail"]
        with head_at(port, tmp_path):
            job = api.until(job_id, "succeeded", "failed", seconds=150)
            assert (job["state"], job["attempt"]) == ("succeeded", 2), job["error"]
            assert worker.poll() is None  # nobody started it but itself
            assert up(api) not in ([], [before])
            assert ends(api, job_id) == ["succeeded"]
            seqs = [event["seq"] for event in api.events(job_id)]
            assert seqs == list(range(1, len(seqs) + 1))
            result = api.get(job["links"]["result"]).json()
            truth = api.run(series={"dataset": dataset}, window=100)
            assert result["distances"] == pytest.approx(truth["distances"], abs=1e-6)
            worker.terminate()
            worker.wait(timeout=30)


def engine(api) -> dict[str, Any]:
    return api.get("/capabilities").json()["engines"][0]


def up(api) -> list[str]:
    """Its workers."""
    return [each["id"] for each in engine(api)["workers"]]
