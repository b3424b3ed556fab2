"""`python -m workers dask|ray …`: workers join a cluster and a server. `python -m workers health`: are those of this machine well?"""

import argparse
import os
import signal
import sys

from workers import fleet, hardware, health, lifeline, secret
from workers.environment import compute_environment, require_cache_folder
from workers.failures import CannotJoin
from workers.logs import set_up_logging
from workers.ray_patience import be_patient


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m workers", description="Join a cluster as a Tidemill worker.")
    commands = whole.add_subparsers(dest="command", required=True)
    dask = commands.add_parser("dask", help="join a Dask scheduler")
    dask.add_argument("--scheduler", required=True, help="tcp://… or tls://… of the scheduler")
    ray = commands.add_parser("ray", help="join a Ray cluster, of which a node runs on this machine")
    ray.add_argument("--address", required=True, help="HOST:PORT of the cluster's head, or auto")
    ray.set_defaults(port=0)
    for engine in (dask, ray):
        engine.add_argument("--server", required=True, help="http://… of the Tidemill server")
        engine.add_argument(
            "--token",
            help="needed where the server asks for one [TIDEMILL_JOIN_TOKEN, or TIDEMILL_JOIN_TOKEN_FILE's words]",
        )
        engine.add_argument(
            "--workers",
            type=_positive,
            help="how many workers to start [one; where there are several GPUs, one for each]",
        )
        engine.add_argument("--threads", type=_positive, help="computing threads of one worker [its part of the cores]")
        engine.add_argument("--gpus", type=_natural, help="GPUs of one worker [its part of all that the driver shows]")
        engine.add_argument(
            "--storage", help="the server's storage, mounted here at the same path; or none [the worker finds out]"
        )
        engine.add_argument("--lifeline", action="store_true", help="end when standard input closes")
        engine.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    dask.add_argument("--port", type=_natural, default=0, help="port to listen on for the cluster [a free one]")
    well = commands.add_parser("health", help="exit 0 if all workers of this machine are in touch with their server")
    well.add_argument(
        "--seconds", type=float, default=health.SECONDS, help="how old the server's last answer may be [15]"
    )
    return whole


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return int(text)


def _positive(text: str) -> int:
    if _natural(text) < 1:
        raise argparse.ArgumentTypeError("give at least 1")
    return int(text)


def main() -> int:
    options = parser().parse_args()
    if options.command == "health":
        well, words = health.check(options.seconds)
        print(words)
        return 0 if well else 1
    if sys.platform != "linux":
        print("Tidemill's workers run on Linux only: they rely on fork, pidfds and sessions.", file=sys.stderr)
        return fleet.REFUSED
    # Told to leave while it still loads its packages, there is nothing yet to leave in order.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if options.parent:
        lifeline.follow(options.parent)
    try:
        return begin(options)
    except CannotJoin as reason:
        print(reason, file=sys.stderr)
    return fleet.REFUSED


def begin(options: argparse.Namespace) -> int:
    """Be the worker that the command asks for, or the parent of several. Raises CannotJoin."""
    options.token = secret.join_token(options.token)
    require_cache_folder()
    if options.storage is not None:
        os.environ["TIDEMILL_STORAGE"] = options.storage
    there = len(hardware.gpus())
    names = (hardware.visible_devices() or [str(index) for index in range(there)])[:there]
    wish = fleet.Wish(options.workers, options.gpus, options.threads, options.port, options.lifeline)
    parts = fleet.shares(wish, names, hardware.cores())
    # Ray ends the process that owns a worker along with its node: then somebody must be left to wait for another one.
    if len(parts) > 1 or (options.command == "ray" and not options.parent and not options.lifeline):
        if options.lifeline:
            lifeline.watch()
        set_up_logging()
        return fleet.run(parts, there)
    (part,) = parts
    os.environ.update(compute_environment(part.threads) | fleet.hiding(part, there))
    return be_worker(options, part)


def be_worker(options: argparse.Namespace, part: fleet.Share) -> int:
    from workers.link import Refused

    try:
        return BEGINNINGS[options.command](options, part)
    except Refused as refusal:
        raise CannotJoin(f"The server at {options.server} refused this worker: {refusal}") from refusal


def join_dask(options: argparse.Namespace, part: fleet.Share) -> int:
    from workers.host import Host

    # The nursery takes seconds to warm, so it is born before Dask, which takes one to import.
    machine = Host(compute_environment(part.threads))

    from workers import dask_worker

    set_up_logging()  # after Dask's own
    return dask_worker.main(
        dask_worker.Options(
            scheduler=options.scheduler,
            server=options.server,
            token=options.token,
            threads=part.threads,
            gpus=len(part.gpus),
            port=options.port,
            lifeline=options.lifeline,
        ),
        machine,
    )


def join_ray(options: argparse.Namespace, part: fleet.Share) -> int:
    be_patient(os.environ)

    from workers import ray_worker

    set_up_logging()
    code = ray_worker.main(
        ray_worker.Options(
            address=options.address,
            server=options.server,
            token=options.token,
            threads=part.threads,
            gpus=len(part.gpus),
            lifeline=options.lifeline,
        )
    )
    sys.stderr.flush()
    os._exit(code)  # Ray's own farewell waits for its cluster, which may be what ended this worker


BEGINNINGS = {"dask": join_dask, "ray": join_ray}


if __name__ == "__main__":
    sys.exit(main())
