"""Which workers may work for this server: those that show the token, speak its version, and are on a cluster it uses."""

import hmac

from fastapi import Request

from app.engines.base import EngineDown
from app.kit.problems import Conflict, Problem, Unavailable
from app.services import Services, services
from workers.contract import VERSION, Join


class WorkerNotAdmitted(Problem):
    """This worker showed no join token, or a wrong one.

    Start it with the server's `TIDEMILL_JOIN_TOKEN` in `--token` or in its environment, or with a file that holds it in
    `TIDEMILL_JOIN_TOKEN_FILE`. A server with `AUTH=keys` that was given none made one, in its HOME, in the file `join-token`.
    """

    status, title = 401, "Worker not admitted"


class VersionMismatch(Conflict):
    """This worker speaks another version of the protocol than the server.

    Install the same Tidemill on both.
    """


class NotOnThisCluster(Conflict):
    """This worker joined another cluster than those the server sends its jobs to.

    Start it with the server's cluster in `--scheduler` (Dask) or `--address` (Ray); `GET /capabilities` names it.
    """


WHERE = {
    "dask": ("--scheduler", "scheduler", "TIDEMILL_DASK_SCHEDULER"),
    "ray": ("--address", "cluster", "TIDEMILL_RAY_ADDRESS"),
}
"""engine → how its worker, and how the server, is told which cluster it is."""


def admitted(request: Request) -> None:
    settings = services(request).settings
    expected = settings.join_token
    if expected is None and settings.auth == "off":
        return
    shown = request.headers.get("authorization", "").removeprefix("Bearer ")
    if expected is None or not hmac.compare_digest(shown.encode(), expected.encode()):
        raise WorkerNotAdmitted(headers={"WWW-Authenticate": "Bearer"})


async def admit(worker: Join, house: Services) -> None:
    """Raise VersionMismatch where the worker speaks otherwise, NotOnThisCluster where jobs from here would not reach it."""
    if worker.version != VERSION:
        raise VersionMismatch(f"The worker speaks version {worker.version}, the server version {VERSION}.")
    if worker.engine not in house.engines:
        raise NotOnThisCluster(
            f"The worker is on a {worker.engine} cluster, and the server uses {' and '.join(house.engines)}; start it with "
            f"`python -m workers {next(iter(house.engines))}`, or name {worker.engine} to the server in TIDEMILL_ENGINE."
        )
    engine = house.engines[worker.engine]
    try:
        present = await engine.workers()
    except EngineDown as down:
        raise Unavailable(f"The server's cluster is not up yet ({down}).", headers={"Retry-After": "1"}) from down
    if worker.address not in present:
        option, cluster, setting = WHERE[worker.engine]
        raise NotOnThisCluster(
            f"The worker at {worker.address} is not on the server's cluster, which is at {engine.address}; start it "
            f"with that address in {option}, or name its {cluster} to the server in {setting}."
        )
