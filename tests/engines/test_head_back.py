"""A Ray head that is not the server's, killed and started again where it was: the engine finds it, and its workers, by itself."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.chaos.acts import free_port, process
from tests.engines.clerk import Clerk
from tests.engines.rig import Rig, make
from tests.house import eventually

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


def test_a_head_that_comes_back_is_found_again_with_its_workers(tmp_path, monkeypatch):
    port = free_port()
    address = f"127.0.0.1:{port}"
    clerk = Clerk()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(clerk))
        rig = Rig(make("ray", tmp_path / "server", address), tmp_path, clerk)
        stack.callback(rig.close)
        with head_at(port, tmp_path) as facts:
            assert facts["address"] == address
            for name, value in facts["environment"].items():
                monkeypatch.setenv(name, value)
            rig.start()
            joining = ["workers", "ray", "--address", address, "--server", clerk.url, "--threads", "1"]
            worker = stack.enter_context(process(joining, tmp_path / "worker.log"))
            before = rig.joined()["address"]
        eventually(lambda: rig.engine.address is None, 40)
        with head_at(port, tmp_path):
            after = eventually(lambda: rig.workers() - {before}, 100)
            assert after
            assert worker.poll() is None  # nobody started it but itself
            assert eventually(lambda: rig.joined()["address"], 60) in rig.workers()
            assert rig.ask("builtins:sum", [20, 22]) == 42
            worker.terminate()
            worker.wait(timeout=30)
