"""Tiles beside STUMPY, SCAMP and quickmp: the same series, in turns, in one process of two threads; medians.

    python -m tests.bench_tiles [kernel] [sizes] [families] [memory]

Peers that are not installed (`make bench` does that) are left out, and the table says so.
"""

import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

from workers.environment import compute_environment

THREADS: Final = 2
os.environ.update(compute_environment(THREADS))
sys.path.append(os.path.join(sys.prefix, "peers"))

import numpy as np  # noqa: E402 - the environment comes first

from workers.matrix_profile.tiles import ab_join, self_join  # noqa: E402

N, M, ROUNDS = 1 << 17, 100, 5
Series = Any


def walk(n: int, seed: int = 0) -> Series:
    return np.random.default_rng(seed).standard_normal(n).cumsum()


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(works: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each; one after the other, so that what else the machine does falls on all of them."""
    took = [{name: seconds(work) for name, work in works.items()} for _ in range(rounds)]
    return {name: statistics.median(each[name] for each in took) for name in works}


def peer(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def row(what: str, figure: float, least: float | None = None, unit: str = "times") -> None:
    wanted = "" if least is None else f"  (at least {least:g})" if unit != "MB" else f"  (at most {least:g})"
    print(f"{what:<76} {figure:8.2f} {unit}{wanted}", flush=True)


def compared(what: str, cells: float, works: dict[str, Callable[[], object]], least: dict[str, float]) -> None:
    took = in_turns(works)
    for name, each in took.items():
        row(f"{what}: {name}", cells / each / 1e6, None, "million cells a second")
    for name, each in list(took.items())[1:]:
        row(f"{what}: tiles ÷ {name}", each / took["tiles"], least.get(name))


def kernel() -> None:
    import stumpy

    stumpy.stump(walk(2000), M)
    scamp, quick = peer("pyscamp"), peer("quickmp")
    if quick:
        quick.initialize()
    a, b = walk(N), walk(N, 1)
    rows = N - M + 1
    selves: dict[str, Callable[[], object]] = {
        "tiles": lambda: self_join(a, M, threads=THREADS),
        "STUMPY": lambda: stumpy.stump(a, M),
    }
    others: dict[str, Callable[[], object]] = {
        "tiles": lambda: ab_join(a, b, M, threads=THREADS),
        "STUMPY": lambda: stumpy.stump(a, M, b, ignore_trivial=False),
    }
    if scamp:
        selves["SCAMP"] = lambda: scamp.selfjoin(a, M, precision="double", threads=THREADS)
        others["SCAMP"] = lambda: scamp.abjoin(a, b, M, precision="double", threads=THREADS)
    if quick:
        selves["quickmp"] = lambda: quick.selfjoin(a, M)
    compared(f"self-join, n = {N:,}, m = {M}", rows**2 / 2, selves, {"STUMPY": 12, "SCAMP": 4})
    compared(f"AB-join, {N:,} × {N:,}, m = {M}", rows**2, others, {"STUMPY": 10, "SCAMP": 3})
    dirty = a.copy()
    spoil(dirty)
    took = in_turns({"clean": selves["tiles"], "dirty": lambda: self_join(dirty, M, threads=THREADS)})
    row("5 % missing values and 5 % constant windows: share of the clean speed", took["clean"] / took["dirty"], 0.8)


def spoil(series: Series) -> None:
    """5 % of the values missing, in gaps as sensors leave them, and one window in twenty constant."""
    rng = np.random.default_rng(2)
    for start in rng.integers(0, len(series) - 50, len(series) // 1000):
        series[start : start + 50] = np.nan
    for start in rng.integers(0, len(series) - 300, len(series) // 4000):
        series[start : start + 300] = series[start]


def sizes() -> None:
    """Cells a second at growing n: so many rounds each."""
    speeds = {}
    for power, rounds in ((15, 5), (16, 5), (17, 5), (18, 5), (19, 3), (20, 1)):
        series = walk(1 << power)
        took = in_turns({"tiles": lambda series=series: self_join(series, M, threads=THREADS)}, rounds)["tiles"]  # type: ignore[misc]
        speeds[power] = (len(series) - M + 1) ** 2 / 2 / took
        row(f"self-join, n = 2^{power}, median of {rounds}", speeds[power] / 1e6, None, "million cells a second")
    row("slowest ÷ fastest of these", min(speeds.values()) / max(speeds.values()), 0.8)


def memory() -> None:
    """Peak memory of a fresh process at n = 2^20, and the first profile of a fresh process."""
    for name, least in (("peak", 400), ("first", 1)):
        told = subprocess.run(
            [sys.executable, "-m", "tests.bench_tiles", name], capture_output=True, text=True, check=True
        )
        figure = float(told.stdout.split()[-1])
        if name == "peak":
            row("peak memory of a self-join, n = 2^20, over the interpreter", figure, least, "MB")
        else:
            print(f"{'first profile of a fresh process, beyond its imports':<76} {figure:8.2f} s  (at most {least})")


def peak() -> None:
    """Beyond what the process had with all imported and its kernels loaded."""
    self_join(walk(2000), M, threads=THREADS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    self_join(walk(1 << 20), M, threads=THREADS)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def first() -> None:
    series = walk(2000)
    print(seconds(lambda: self_join(series, 50, threads=THREADS)))


def families() -> None:
    """Whole jobs, their checks and files included, beside STUMPY's bare functions."""
    import stumpy

    from workers.contract import call_by_name
    from workers.operations import OPERATIONS
    from workers.reporting import Silent

    def job(kind: str, series: dict[str, list[Series]], **params: Any) -> Callable[[], object]:
        sources = {
            name: [{"name": name, "values": each.tolist()} for each in several] for name, several in series.items()
        }
        plan = {"backend": "cpu", "implementation": "tiles"}

        def work() -> None:
            with tempfile.TemporaryDirectory() as folder:
                task = {"kind": kind, "params": params, "sources": sources, "folder": folder, "plan": plan}
                call_by_name(OPERATIONS[kind].run, task, Silent())

        return work

    a, b = walk(1 << 15), walk(1 << 15, 1)
    several = [walk(1 << 14, seed) for seed in range(6)]
    windows = {"min_window": 50, "max_window": 145, "step": 5}

    def pan() -> None:
        visited = stumpy.stimp(a, 50, 145, 5, percentage=1.0)
        for _ in range(20):
            visited.update()

    cases = {
        "mpdist, 32,768 and 32,768": (job("mpdist", {"a": [a], "b": [b]}, window=M), lambda: stumpy.mpdist(a, b, M)),
        "consensus motif, six of 16,384": (
            job("consensus_motif", {"series": several}, window=M),
            lambda: stumpy.ostinato(several, M),
        ),
        "pan profile, 32,768, 20 windows": (job("pan_profile", {"series": [a]}, **windows), pan),
    }
    for what, (ours, theirs) in cases.items():
        took = in_turns({"tiles": ours, "STUMPY": theirs})
        row(f"{what}: tiles ÷ STUMPY", took["STUMPY"] / took["tiles"], 8)


PARTS: Final = {"kernel": kernel, "sizes": sizes, "families": families, "memory": memory}
ERRANDS: Final = {"peak": peak, "first": first}


def main() -> int:
    for name in sys.argv[1:] or PARTS:
        (PARTS | ERRANDS)[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
