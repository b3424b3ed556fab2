"""What this machine can really do: each probe runs a small real case and compares its answer with a known one.

    python -m workers.probe [--check all|cpu|dask|ray|cuda|training] [--require-cuda] [--json]

A capability is what was executed here, never what imports (decision 10).
"""

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from workers.contract import Probe
from workers.environment import compute_environment
from workers.host import Host
from workers.nursery_client import Nursery

Finding = tuple[Literal["absent", "importable", "executed"], str]
NEEDED_CUDA = 3
"""Exit code when `--require-cuda` cannot be met."""


def probed(name: str, check: Callable[[], Finding]) -> Probe:
    """Run one check, timed; one that raises has proved nothing, and its reason is kept."""
    started = time.perf_counter()
    try:
        evidence, detail = check()
    except Exception as fault:
        evidence, detail = "absent", f"{type(fault).__name__}: {fault}"
    return Probe(
        name=name,
        evidence=evidence,
        detail=detail,
        seconds=round(time.perf_counter() - started, 4),
        at=datetime.now(UTC),
    )


def in_child(nursery: Nursery, call: str) -> Any:
    """Run a check where jobs run: in a fork of the nursery."""
    return nursery.fork(call, []).follow(lambda message: None)


def check_cpu(nursery: Nursery) -> Finding:
    in_child(nursery, "workers.probe:known_answer")
    return "executed", "stump gave the known matrix profile of the series in STUMPY's documentation"


def known_answer(reporter: object) -> None:
    """In a child: raises AssertionError where STUMPY's answer is not the known one."""
    from workers.matrix_profile import warm

    warm.known_answer()


def measure(reporter: object) -> float:
    """In a child: cells of the distance matrix per second, with this worker's threads."""
    from workers.matrix_profile import warm

    return float(warm.measure())


def check_cuda() -> Finding:
    """Ask the driver in a process of its own: a process that has touched CUDA must never fork."""
    answer = subprocess.run(
        [sys.executable, "-m", "workers.probe", "--driver"], capture_output=True, text=True, timeout=60, check=False
    )
    if answer.returncode != 0:
        return "absent", answer.stdout.strip() or f"asking the CUDA driver ended with code {answer.returncode}"
    return "importable", answer.stdout.strip() + "; this release runs no GPU function yet"


CUDA_ERRORS = {
    100: "the CUDA driver is installed but no CUDA device is detected; check `nvidia-smi` and the container's device settings",
    35: "the CUDA driver is older than the runtime; update the driver",
    999: "the CUDA driver reports an unknown error; a reboot or a reload of the nvidia modules usually helps",
}


def ask_driver() -> tuple[int, str]:
    """In a process of its own: initialise the CUDA driver. Returns an exit code and what it said."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as fault:
        return (
            1,
            f"CUDA driver library cannot be found ({fault}); install NVIDIA's driver, or run on a machine with one",
        )
    code = driver.cuInit(0)
    if code != 0:
        return 1, CUDA_ERRORS.get(code, f"cuInit failed with CUDA error {code}")
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return 1, CUDA_ERRORS[100]
    return 0, f"the CUDA driver shows {count.value} device(s)"


def check_dask() -> Finding:
    """A scheduler and a worker of this machine alone run one task. (A worker that joins does this on its own cluster.)"""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        answer = client.submit(sum, [20, 22]).result(timeout=30)
    return (
        ("executed", "a Dask worker ran a task and returned its answer")
        if answer == 42
        else ("absent", f"got {answer}")
    )


def later(what: str) -> Callable[[], Finding]:
    return lambda: ("absent", f"this release has no {what} yet")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.probe", description="Probe this machine without a server.")
    parser.add_argument("--check", choices=("all", "cpu", "dask", "ray", "cuda", "training"), default="all")
    parser.add_argument("--require-cuda", action="store_true", help="exit 3 unless a GPU function was executed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--driver", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.driver:
        code, words = ask_driver()
        print(words)
        return code

    def cpu_on_a_nursery() -> Finding:
        host = Host(compute_environment(threads=1))
        try:
            return check_cpu(host.nursery_for("matrix_profile"))
        finally:
            host.close()

    checks: dict[str, Callable[[], Finding]] = {
        "cpu": cpu_on_a_nursery,
        "dask": check_dask,
        "ray": later("Ray engine"),
        "cuda": check_cuda,
        "training": later("training"),
    }
    chosen = checks if options.check == "all" else {options.check: checks[options.check]}
    if options.require_cuda:
        chosen = {**chosen, "cuda": check_cuda}
    probes = [probed(name, check) for name, check in chosen.items()]
    if options.json:
        print(json.dumps([probe.model_dump(mode="json") for probe in probes], indent=2))
    else:
        for probe in probes:
            print(f"{probe.name:<10} {probe.evidence:<10} {probe.seconds:6.2f} s  {probe.detail}")
    met = any(probe.name == "cuda" and probe.evidence == "executed" for probe in probes)
    return NEEDED_CUDA if options.require_cuda and not met else 0


if __name__ == "__main__":
    sys.exit(main())
