"""The dask and ray probes of a bare machine: a scheduler and a worker of its own run one task. (A worker asks its own cluster.)"""

import os
import tempfile

from workers.probes.finding import Finding

QUESTION, ANSWER = [20, 22], 42
RAY_FOLDER = "tidemill-probe-"


def check_dask() -> Finding:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        return judged("Dask", client.submit(sum, QUESTION).result(timeout=30))


def check_ray() -> Finding:
    """Ray's processes and files are this probe's own, and gone when it ends."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    # Ray's sockets lie below this folder, and a socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix=RAY_FOLDER, dir="/tmp") as folder:
        ray.init(
            "local",
            num_cpus=1,
            num_gpus=0,
            include_dashboard=False,
            log_to_driver=False,
            _temp_dir=folder,
            logging_level="error",
        )
        try:
            return judged("Ray", ray.get(ray.remote(_add).remote(*QUESTION), timeout=60))
        finally:
            ray.shutdown()


def _add(*numbers: int) -> int:
    return sum(numbers)


def judged(engine: str, answer: object) -> Finding:
    if answer != ANSWER:
        raise ArithmeticError(f"the {engine} worker computed 20 + 22 = {answer}")
    return "executed", f"a {engine} worker ran a task and returned its answer"
