"""A cluster that cannot start leaves nothing behind, says why, and is tried again until it can."""

import asyncio
import gc
import socket
import subprocess
import sys
import warnings

import pytest

from app.engines.base import EngineDown
from app.engines.dask import DaskEngine
from tests.engines.rig import NAMES, make, ray_folders, rig_of
from tests.house import eventually
from tests.processes import all_gone

OBSTACLES = {"dask": ("DASK_DISTRIBUTED__SCHEDULER__IDLE_TIMEOUT", "whenever"), "ray": ("RAY_OVERRIDE_RESOURCES", "{")}
"""What keeps each from starting: a variable of its own, with a value that it cannot use."""


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_start_leaves_nothing_and_a_later_one_may_succeed(name, tmp_path, monkeypatch, caplog):
    variable, value = OBSTACLES[name]
    monkeypatch.setenv(variable, value)
    with rig_of(make(name, tmp_path), tmp_path) as rig:
        rig.start()
        eventually(lambda: "could not be started" in caplog.text, 40)
        assert rig.engine.address is None
        with pytest.raises(EngineDown):
            rig.run(rig.engine.workers())
        family = rig.family()
        monkeypatch.delenv(variable)
        rig.worker()
        assert all_gone([each for each in family if each not in rig.family()])
        assert len(ray_folders(tmp_path)) == (name == "ray")
        family = rig.family()
        rig.stop()
        assert all_gone(family)
        assert not ray_folders(tmp_path)


def test_a_client_that_was_given_up_while_it_connected_is_not_closed_by_nobody(tmp_path):
    """Dask's client closes itself when it is collected, in a coroutine that none awaits, unless it is closed already."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never says a word
        engine = DaskEngine(f"tcp://127.0.0.1:{silent.getsockname()[1]}", tmp_path, 1, 1, None)

        async def give_up() -> None:
            connecting = asyncio.create_task(engine._connect(engine._scheduler))
            await asyncio.sleep(0.3)
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)

        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            asyncio.run(give_up())
            gc.collect()
    assert not [each for each in heard if "never awaited" in str(each.message)]


TOLD_AT_ANY_MOMENT = """
import signal, subprocess, sys
from pathlib import Path
from workers import ray_head

ray_head.LOOK_SECONDS = 1e-5
child = subprocess.Popen(["sleep", "60"])
for i in range(300):
    head = ray_head.Head(1, Path(sys.argv[1]))
    signal.signal(signal.SIGALRM, lambda *_: head.end())
    signal.setitimer(signal.ITIMER_REAL, 0.001 + i * 1e-6)
    assert head._watch(Path(sys.argv[1]), child.pid) is None
child.kill()
"""


def test_a_ray_head_that_is_told_to_end_at_any_moment_ends(tmp_path):
    """A signal's handler that sets an Event waits for ever where it interrupts that Event's own wait."""
    subprocess.run([sys.executable, "-c", TOLD_AT_ANY_MOMENT, str(tmp_path)], check=True, timeout=30)
