"""What Ray must have in its environment so that a network that is silent for a minute costs no node: `ray start`, here and on every
machine of a cluster, and whoever joins it as a driver. Read by Ray when it is loaded."""

from collections.abc import MutableMapping
from typing import Final

PATIENT: Final = {
    # The head asks each node every 3 s, and five times without an answer is a dead one. A node that was killed refuses at once and is
    # missed as soon as before; one behind a silent network has the whole time of each question.
    "RAY_health_check_timeout_ms": "60000",
    # How long a node, and a driver, do without the head before they end.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "300",
    # A connection's own pings: without an answer for so long it is closed, and what was being asked over it has failed.
    "RAY_grpc_keepalive_timeout_ms": "120000",
}


def be_patient(environment: MutableMapping[str, str]) -> None:
    """Add what is not there already."""
    for name, value in PATIENT.items():
        environment.setdefault(name, value)
