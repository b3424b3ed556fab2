"""How the kernel behaves as something that runs: it stops, lets others run, starts at once, and is one for all threads."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.tiles.brute import work
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.tile import Tile


def walk(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n).cumsum()


@pytest.fixture(scope="module")
def long_work():
    """Some seconds on one thread."""
    series, m = walk(150_000), 100
    compute(work(series[:500], series[:500], m, Tile(0, 200, 30, 200)))  # compiled
    return work(series, series, m, Tile(0, 149_901, 26, 75_000))


def test_a_tile_that_is_to_stop_is_not_computed(long_work):
    started = time.thread_time()
    assert compute(long_work, np.ones(1, bool)) is None
    assert time.thread_time() - started < 0.5


def test_a_tile_under_way_stops_soon_after_it_is_told(long_work):
    stop = np.zeros(1, bool)
    told = []

    def tell():
        told.append(time.perf_counter())
        stop[0] = True

    timer = threading.Timer(0.3, tell)
    timer.start()
    assert compute(long_work, stop) is None
    assert time.perf_counter() - told[0] < 0.5  # some 10 ms of computing, on cores that others may have


def test_other_threads_run_while_a_tile_is_computed(long_work):
    stop = np.zeros(1, bool)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(compute, long_work, stop)
        time.sleep(0.1)  # past what Python does before the kernel starts
        ticks = 0
        while ticks < 20 and not running.done():
            time.sleep(0.001)
            ticks += 1
        assert not running.done()  # it did not have to end for us to come this far
        stop[0] = True
        assert running.result(10) is None


def test_several_threads_at_once_find_the_same():
    series, m = walk(3000, 1), 50
    tile = Tile(0, 2951, 14, 2900)
    jobs = [work(series, series, m, tile, normalize=k % 2 == 0) for k in range(6)]
    alone = [compute(job) for job in jobs[:2]]
    with ThreadPoolExecutor(4) as pool:
        for k, found in enumerate(pool.map(compute, jobs)):
            for name in ("rows", "row_similarity", "row_neighbors", "columns", "column_similarity", "column_neighbors"):
                np.testing.assert_array_equal(getattr(found, name), getattr(alone[k % 2], name))


def test_what_is_given_stays_as_it_was():
    series, m = walk(500, 2), 20
    job = work(series, series, m, Tile(0, 481, 6, 475))
    arrays = (job.row_values, job.column_values, job.row_similarity, job.column_similarity)
    before = [each.copy() for each in arrays]
    for each in arrays:
        each.flags.writeable = False
    compute(job)
    for each, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(each, copy)


def test_the_kernel_needs_neither_stumpy_nor_a_compiler_once_it_is_cached():
    script = """
import sys, time
import numpy as np
from workers.matrix_profile.tiles.compute import compute
from workers.matrix_profile.tiles.tile import Tile, Work
assert not {"stumpy", "pandas"} & set(sys.modules)
T, none = np.random.default_rng(0).standard_normal(300), np.full(281, -np.inf)
job = Work(Tile(0, 281, 6, 275), 20, True, 6, T, T[6:], none, none[6:])
started = time.thread_time()
compute(job)
print(time.thread_time() - started)
"""
    seconds = [
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    assert seconds[1] < 2  # some 0.4 s where cores are free; compiling takes 10
