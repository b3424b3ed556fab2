"""Fill Numba's disk cache, so that no job ever waits for a compiler: `python -m workers.compile [THREADS]`.

Done at install, and by a worker that finds its cache empty before it reports ready (decision 12).
"""

import argparse
import os
import subprocess
import sys
import time

from workers import hardware
from workers.contract import call_by_name
from workers.environment import compute_environment, numba_cache_folder

WARM = "workers.matrix_profile.warm:warm"
AT_ONCE = ("normalised", "p_norm")
"""Kernels that have little in common are compiled by a process each."""


def main() -> int:
    cores = hardware.cores()
    parser = argparse.ArgumentParser(prog="python -m workers.compile", description="Compile STUMPY's kernels once.")
    parser.add_argument(
        "threads", nargs="?", type=int, default=max(1, cores // 2), help="threads a worker will compute with"
    )
    parser.add_argument("--only", choices=AT_ONCE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.update(compute_environment(options.threads))
    if options.only:
        call_by_name(WARM, options.only)
        return 0
    folder = numba_cache_folder(options.threads)
    print(f"Compiling STUMPY's kernels for {options.threads} thread(s) into {folder} …", flush=True)
    started = time.perf_counter()
    if cores > 1 and not folder.exists():
        command = [sys.executable, "-m", "workers.compile", str(options.threads), "--only"]
        for process in [subprocess.Popen([*command, each]) for each in AT_ONCE]:
            process.wait()
    call_by_name(WARM)  # what both needed, one of them may have failed to keep
    print(f"  done in {time.perf_counter() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
