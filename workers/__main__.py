"""`python -m workers dask|ray …`: a worker joins a cluster and a server."""

import argparse
import os
import signal
import sys
from typing import NoReturn

from workers.environment import compute_environment


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m workers", description="Join a cluster as a Tidemill worker.")
    engines = whole.add_subparsers(dest="engine", required=True)
    dask = engines.add_parser("dask", help="join a Dask scheduler")
    dask.add_argument("--scheduler", required=True, help="tcp://… or tls://… of the scheduler")
    dask.add_argument("--port", type=int, default=0, help="port to listen on for the cluster [a free one]")
    ray = engines.add_parser("ray", help="join a Ray cluster, of which a node runs on this machine")
    ray.add_argument("--address", required=True, help="HOST:PORT of the cluster's head, or auto")
    for engine in (dask, ray):
        engine.add_argument("--server", required=True, help="http://… of the Tidemill server")
        engine.add_argument(
            "--token", default=os.environ.get("TIDEMILL_JOIN_TOKEN"), help="needed where the server asks for one"
        )
        engine.add_argument(
            "--threads", type=int, default=len(os.sched_getaffinity(0)), help="computing threads [the machine's cores]"
        )
        engine.add_argument("--gpus", type=int, default=None, help="GPUs it may use [all that the driver shows]")
        engine.add_argument("--lifeline", action="store_true", help="end when standard input closes")
    return whole


def main() -> int:
    options = parser().parse_args()
    if sys.platform != "linux":
        print("Tidemill's workers run on Linux only: they rely on fork, pidfds and sessions.", file=sys.stderr)
        return 2
    os.environ.update(compute_environment(options.threads))
    # Told to leave while it still loads its packages, there is nothing yet to leave in order.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    from workers.joining import CannotJoin
    from workers.link import Refused

    try:
        return BEGINNINGS[options.engine](options)
    except Refused as refusal:
        print(f"The server at {options.server} refused this worker: {refusal}", file=sys.stderr)
    except CannotJoin as reason:
        print(reason, file=sys.stderr)
    return 2


def join_dask(options: argparse.Namespace) -> int:
    from workers.host import Host

    # The nursery takes seconds to warm, so it is born before Dask, which takes one to import.
    machine = Host(compute_environment(options.threads))

    from workers import dask_worker, joining

    joining.set_up_logging()
    dask_worker.main(
        dask_worker.Options(
            scheduler=options.scheduler,
            server=options.server,
            token=options.token,
            threads=options.threads,
            gpus=claim_gpus(options.gpus),
            port=options.port,
            lifeline=options.lifeline,
        ),
        machine,
    )
    return 0


def join_ray(options: argparse.Namespace) -> NoReturn:
    from workers import joining, ray_worker

    joining.set_up_logging()
    code = ray_worker.main(
        ray_worker.Options(
            address=options.address,
            server=options.server,
            token=options.token,
            threads=options.threads,
            gpus=claim_gpus(options.gpus),
            lifeline=options.lifeline,
        )
    )
    sys.stderr.flush()
    os._exit(code)  # Ray's own farewell waits for its cluster, which may be what ended this worker


def claim_gpus(asked: int | None) -> int:
    """How many GPUs this worker has; where it is to have fewer than there are, the others are hidden from it and its children."""
    from workers import hardware

    there = len(hardware.gpus())
    if asked is None or asked >= there:
        return there
    names = hardware.visible_devices() or [str(index) for index in range(there)]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names[:asked])
    return asked


BEGINNINGS = {"dask": join_dask, "ray": join_ray}


if __name__ == "__main__":
    sys.exit(main())
