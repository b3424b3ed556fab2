"""`python -m workers dask …`: a worker joins a cluster and a server."""

import argparse
import logging
import os
import sys

from workers.environment import compute_environment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers", description="Join a cluster as a Tidemill worker.")
    kinds = parser.add_subparsers(dest="engine", required=True)
    dask = kinds.add_parser("dask", help="join a Dask scheduler")
    dask.add_argument("--scheduler", required=True, help="tcp://… or tls://… of the scheduler")
    dask.add_argument("--server", required=True, help="http://… of the Tidemill server")
    dask.add_argument(
        "--token", default=os.environ.get("TIDEMILL_JOIN_TOKEN"), help="needed where the server asks for one"
    )
    dask.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="computing threads [the machine's cores]"
    )
    dask.add_argument("--port", type=int, default=0, help="port to listen on for the cluster [a free one]")
    dask.add_argument("--lifeline", action="store_true", help="end when standard input closes")
    options = parser.parse_args()
    if sys.platform != "linux":
        print("Tidemill's workers run on Linux only: they rely on fork, pidfds and sessions.", file=sys.stderr)
        return 2
    level = os.environ.get("TIDEMILL_LOG_LEVEL", "info").upper()
    logging.basicConfig(level=level, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for noisy in ("distributed", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    os.environ.update(compute_environment(options.threads))

    from workers.host import Host

    # The nursery takes seconds to warm, so it is born before Dask, which takes one to import.
    machine = Host(compute_environment(options.threads))

    from workers import dask_worker
    from workers.link import Refused

    try:
        dask_worker.main(
            dask_worker.Options(
                scheduler=options.scheduler,
                server=options.server,
                token=options.token,
                threads=options.threads,
                port=options.port,
                lifeline=options.lifeline,
            ),
            machine,
        )
    except Refused as refusal:
        print(f"The server at {options.server} refused this worker: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
