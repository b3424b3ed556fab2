"""What to say, loudly, of a cluster whose door stands open: whoever reaches a scheduler or a head runs code on all its machines."""

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from app.kit.own_hosts import is_loopback

CUT_SECONDS: Final = 60.0
"""A network that is cut for so long is to lose nothing."""
TLS_SETTINGS: Final = "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__SCHEDULER__CERT, …__SCHEDULER__KEY and so on"


def of_dask(scheduler: str) -> list[str]:
    """What is wrong with joining this scheduler; nothing where it speaks TLS, which asks both sides for their certificate."""
    address = urlsplit(scheduler)
    if address.scheme == "tls" or is_loopback(address.hostname or ""):
        return []
    return [
        f"The Dask scheduler at {scheduler} asks nobody who they are: whoever reaches its port can run code on every worker. "
        f"Give it TLS and name it as tls://… ({TLS_SETTINGS}), or let nobody else into that network."
    ]


def of_hasty(scheduler: str, seconds: float) -> list[str]:
    """What is wrong with a scheduler that gives a connection up after so many seconds of silence."""
    if seconds > CUT_SECONDS:
        return []
    return [
        f"The Dask scheduler at {scheduler} gives a worker up whose network is cut for {seconds:g} s. Start it with "
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP=300s in its environment, so that a short cut costs nothing."
    ]


def of_ray(head: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The same of a Ray head, HOST:PORT; nothing where it is asked for with a token."""
    host = urlsplit(f"//{head}").hostname or ""
    if environment.get("RAY_AUTH_MODE") == "token" or head in ("auto", "embedded") or is_loopback(host):
        return []
    return [
        f"The Ray head at {head} is joined without a token: whoever reaches its ports can run code on every node. "
        "Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH for the head, the workers and this server, or let nobody else into that network."
    ]
