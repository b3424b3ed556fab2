"""Fill Numba's disk cache, so that no job ever waits for a compiler: `python -m workers.compile [THREADS]`.

Done at install, and by a worker that finds its cache empty before it reports ready (decision 12).
"""

import argparse
import os
import sys
import time

from workers.contract import call_by_name
from workers.environment import compute_environment, numba_cache_folder


def main() -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m workers.compile", description="Compile STUMPY's kernels once.")
    parser.add_argument(
        "threads", nargs="?", type=int, default=max(1, cores // 2), help="threads a worker will compute with"
    )
    threads = parser.parse_args().threads
    os.environ.update(compute_environment(threads))
    print(f"Compiling STUMPY's kernels for {threads} thread(s) into {numba_cache_folder(threads)} …", flush=True)
    started = time.perf_counter()
    call_by_name("workers.matrix_profile.warm:warm")
    print(f"  done in {time.perf_counter() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
