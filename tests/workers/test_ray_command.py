"""`python -m workers ray`: the worker ends with its Ray actor, and its command starts it again."""

import contextlib
import signal

import psutil

from tests.chaos.acts import process
from tests.engines.clerk import Clerk
from tests.engines.test_outside import ray_cluster
from tests.house import eventually
from tests.processes import all_gone, below


def test_a_worker_that_ends_with_its_actor_is_started_again(tmp_path, monkeypatch):
    clerk, words = Clerk(), tmp_path / "worker.log"
    with (
        ray_cluster(tmp_path, monkeypatch) as (_, worker),
        contextlib.closing(clerk),
        process([*worker, "--server", clerk.url, "--threads", "1"], words) as command,
    ):
        eventually(lambda: "joined the server" in words.read_text(), 90)
        actor = next(each for each in psutil.process_iter() if ours(each, tmp_path))
        actor.kill()
        eventually(lambda: words.read_text().count("joined the server") == 2, 90)
        assert "ended with code 1" in words.read_text()
        family = below(command.pid)
        command.send_signal(signal.SIGTERM)
        assert command.wait(timeout=30) == 0
        assert all_gone(family)


def ours(each: psutil.Process, folder) -> bool:
    """Whether this is the actor of the cluster in that folder: what it was started with names it."""
    with contextlib.suppress(psutil.Error):
        return each.name().startswith("ray::RayWorker") and each.environ()["RAY_AUTH_TOKEN_PATH"].startswith(
            str(folder)
        )
    return False
