"""What the tests of CUDA jobs have children do, on Numba's simulator or on a GPU."""

import os
import subprocess
import time

import numpy as np


def _series(values):
    return [np.array(each, dtype=np.float64) for each in values]


def call(task, reporter):
    """One of STUMPY's GPU functions on the series of `task`, as plain numbers: rows of a profile, or what the family gives."""
    import stumpy

    name, series, window = task["function"], _series(task["series"]), task["window"]
    device = {"device_id": task.get("device_id", 0)}
    if name.endswith("stimp"):
        pan = getattr(stumpy, name)(series[0], min_m=window, max_m=window + 2, **device)
        for _ in pan.M_:
            pan.update()
        return {int(m): np.asarray(p, dtype=np.float64).tolist() for m, p in zip(pan.M_, pan.P_, strict=True)}
    if name.endswith("ostinato"):
        radius, which, where = getattr(stumpy, name)(series, window, **device)
        return [float(radius), int(which), int(where)]
    if name.endswith("dist"):
        return float(getattr(stumpy, name)(*series, window, **device))
    against = {"T_B": series[1], "ignore_trivial": False} if len(series) == 2 else {}
    found = getattr(stumpy, name)(series[0], window, k=task.get("k", 1), **against, **device)
    # In text, since JSON has no infinity.
    return np.asarray(found, dtype=np.float64).astype(str).tolist()


def one_device_fails(task, reporter):
    """The other device's share would take a minute more."""
    from workers.cuda.pool import Pool

    pool = Pool(2)
    pool.apply_async(globals()[task["how"]], ())
    time.sleep(60)


def cause_of_a_failure(task, reporter):
    from workers.cuda.pool import Pool

    call = Pool(2).apply_async(lose_its_temper, ())
    try:
        time.sleep(60)
    except RuntimeError as fault:
        return [str(fault), str(fault.__cause__), call.process.returncode]


def run_out_of_device_memory():
    raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")


def lose_its_temper():
    raise ValueError("secret text that stays in the log")


def be_killed():
    os.kill(os.getpid(), 9)


def tell_and_sleep():
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)


def two_devices_at_work(task, reporter):
    """Tell the pids of two devices' processes, then wait for them."""
    from workers.cuda.pool import Pool

    pool = Pool(2)
    calls = [pool.apply_async(tell_and_sleep, ()) for _ in range(2)]
    reporter.log(" ".join(str(call.process.pid) for call in calls))
    pool.join()


def identity(task, reporter):
    return {
        "numbers": task.get("devices"),
        "devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "disabled": os.environ.get("NUMBA_DISABLE_CUDA"),
        "temporary": os.environ.get("TMPDIR"),
    }
