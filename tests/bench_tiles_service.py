"""Tiles through HTTP beside the bare kernel, and on two workers beside one: what the service costs."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.house import Api, House, eventually, long_series, running
from workers.environment import compute_environment

N, M, ROUNDS = 1 << 17, 100, 5
BARE = f"""
import sys, time
import numpy as np
from workers.matrix_profile.tiles import self_join
series = np.load(sys.argv[1])
self_join(series[:2000], {M}, threads=2)
for _ in sys.stdin:
    started = time.perf_counter()
    self_join(series, {M}, threads=2)
    print(time.perf_counter() - started, flush=True)
"""


def tiles_as_jobs() -> None:
    """Wall time from the request to the verified result with its files, on two embedded workers of one thread; and one worker's."""
    environment = {"TIDEMILL_WORKERS": "2", "TIDEMILL_WORKER_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.npy"
        path.write_bytes(long_series(N))
        with running(House(Path(folder) / "home", environment)) as house, house.api() as api, bare(path) as kernel:
            eventually(lambda: len(api.get("/capabilities").json()["engines"][0]["workers"]) == 2, 120)
            dataset = api.post("/datasets", files={"file": (path.name, path.read_bytes())}).json()["id"]
            kernel()
            job(api, dataset)
            rounds = [
                {
                    "bare": kernel(),
                    "wall": job(api, dataset)["wall"],
                    "one": job(api, dataset, backend="cpu")["plan"]["estimate"]["actual_seconds"],
                    "two": job(api, dataset, backend="dask")["plan"]["estimate"]["actual_seconds"],
                }
                for _ in range(ROUNDS)
            ]
    took = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    print(f"{f'self-join, n = {N:,}, as a job, from the request to the result':<76} {took['wall']:8.2f} s")
    print(f"{'the bare kernel on two threads':<76} {took['bare']:8.2f} s")
    print(f"{'as a job ÷ the bare kernel':<76} {took['wall'] / took['bare']:8.2f} times  (at most 1.15)")
    ratio = took["one"] / took["two"]
    print(f"{'two workers of one thread ÷ one, computing':<76} {ratio:8.2f} times  (at least 1.9)")


def job(api: Api, dataset: str, **execution: str) -> dict[str, Any]:
    params = {"series": {"dataset": dataset}, "window": M}
    started = time.perf_counter()
    done = api.submit({"kind": "matrix_profile", "params": params, "execution": execution}, Prefer="wait=60")
    assert done["state"] == "succeeded", done["error"]
    return {"wall": time.perf_counter() - started, **done}


@contextmanager
def bare(path: Path) -> Iterator[Any]:
    """A process of two threads with nothing but the kernel; each call is one profile, and returns its seconds."""
    command = [sys.executable, "-W", "ignore", "-c", BARE, str(path)]
    environment = os.environ | compute_environment(2)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as process:
        told, said = process.stdin, process.stdout
        assert told
        assert said

        def once() -> float:
            told.write("\n")
            told.flush()
            return float(said.readline())

        yield once
        told.close()
