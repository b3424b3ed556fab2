"""`make bench`: what a caller waits for, measured on this machine, medians, side by side in one run.

`python -m tests.bench small tiles spread training` for some of its parts.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.house import House, eventually, long_series, running

SERIES = [float((i * i) % 23) for i in range(2000)]
BODY = {"kind": "matrix_profile", "params": {"series": {"values": SERIES}, "window": 50}}
IN_A_FRESH_PROCESS = (
    "import numpy as np, stumpy; stumpy.stump(np.array([float((i * i) % 23) for i in range(2000)]), 50)"
)
PARALLEL_CALLERS = 16


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


BACKENDS = ("cpu", "dask", "ray")
LONG = 50_000


def spreading() -> None:
    """The same profile on one worker, and spread over two of each engine; medians of three, in turns."""
    environment = {"TIDEMILL_ENGINE": "dask,ray", "TIDEMILL_WORKERS": "2", "TIDEMILL_WORKER_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder, running(House(Path(folder) / "home", environment)) as house:
        with house.api() as api:
            eventually(
                lambda: all(len(each["workers"]) == 2 for each in api.get("/capabilities").json()["engines"]), 120
            )
            dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(LONG))}).json()["id"]

            def job(backend: str) -> None:
                params = {"series": {"dataset": dataset}, "window": 100}
                execution = {"backend": backend, "implementation": "stumpy", "fallback": "forbid"}
                submitted = api.submit({"kind": "matrix_profile", "params": params, "execution": execution})
                api.until(submitted["id"], "succeeded", seconds=120)

            rounds = [{backend: seconds(lambda b=backend: job(b)) for backend in BACKENDS} for _ in range(3)]
        for backend in BACKENDS:
            took = statistics.median(each[backend] for each in rounds)
            times = statistics.median(each["cpu"] / each[backend] for each in rounds)
            what = f"profile of {LONG:,} values, {'one worker' if backend == 'cpu' else f'two {backend} workers'}"
            print(f"{what:<60} {took:8.2f} s  {times:.2f} times as fast as one worker")


def small() -> None:
    """One small job after the other, many at once, and the same without a service."""
    with tempfile.TemporaryDirectory() as folder, running(House(Path(folder) / "home")) as house, house.api() as api:

        def one_job() -> None:
            assert api.submit(BODY, Prefer="wait=60")["state"] == "succeeded"

        first = seconds(one_job)
        later = statistics.median(seconds(one_job) for _ in range(20))
        process = statistics.median(
            seconds(lambda: subprocess.run([sys.executable, "-W", "ignore", "-c", IN_A_FRESH_PROCESS], check=True))
            for _ in range(2)
        )
        singles = 400
        with ThreadPoolExecutor(PARALLEL_CALLERS) as pool:
            burst = seconds(lambda: list(pool.map(lambda _: api.submit(BODY), range(singles))))
        batch = seconds(
            lambda: api.post("/jobs/batch", json={"jobs": [BODY | {"priority": -100}] * 100}).raise_for_status()
        )
    print(f"{'first small job after the start, submission to result':<60} {first * 1000:8.0f} ms")
    print(f"{'later ones, median of 20':<60} {later * 1000:8.0f} ms")
    print(
        f"{'the same profile by a script in a fresh process':<60} {process * 1000:8.0f} ms = {process / later:.0f} times as long"
    )
    print(
        f"{f'durable submissions, {PARALLEL_CALLERS} callers at once, cluster busy':<60} {singles / burst:8.0f} jobs a second"
    )
    print(f"{'durable submission of a batch of 100':<60} {batch * 1000:8.0f} ms")


def training() -> None:
    """Two ranks as a job and under `torchrun`; and what our callbacks cost, in a process that does nothing else."""
    from tests.bench_training import training  # loads torch

    training()
    subprocess.run([sys.executable, "-m", "tests.bench_reporting"], check=True)


def tiles() -> None:
    """Our kernel beside its peers, in a process of two threads; then as jobs, beside itself."""
    from tests.bench_tiles_service import tiles_as_jobs

    subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.bench_tiles"], check=True)
    tiles_as_jobs()


PARTS = {"small": small, "tiles": tiles, "spread": spreading, "training": training}


def main() -> int:
    asked = sys.argv[1:] or list(PARTS)
    if unknown := set(asked) - set(PARTS):
        print(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in asked:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
