"""Where the ranks of a gang meet, and over which network interface each of its machines gets there."""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import psutil

from workers.contract import Node
from workers.training.failures_named import RendezvousFailed

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_INTERFACE: Final = "lo"
ANY_PORT: Final = 9
NETWORK: Final = frozenset({"tcp", "tls"})
"""Schemes of addresses that say where a worker's machine is."""


def meeting_place(nodes: Sequence[Node], reached_by: Callable[[], str]) -> str:
    """The address of the first node at which all can meet: the loopback where they are one machine, else the one that
    `reached_by` gives. Raises RendezvousFailed where only this machine itself can reach that."""
    if len({machine_of(node) for node in nodes}) == 1:
        return LOOPBACK
    address = reached_by()
    if is_loopback(address):
        others = ", ".join(sorted({node.host for node in nodes[1:]}))
        raise RendezvousFailed(
            f"The cluster knows the first worker's machine, {nodes[0].host}, as {address}, where {others} cannot reach it. Start the "
            "cluster, and its workers, at an address of the network."
        )
    return address


def machine_of(node: Node) -> tuple[str, str | None]:
    """What tells machines apart: their names, and, for some are all called alike, the addresses of their workers on the network."""
    where = urlsplit(node.address)
    return node.host, where.hostname if where.scheme in NETWORK else None


def is_loopback(address: str) -> bool:
    try:
        found = {info[4][0] for info in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)}
    except OSError as fault:
        raise RendezvousFailed(f"The name {address!r}, at which the ranks were to meet, is unknown: {fault}.") from None
    return all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)


def interface_to(address: str) -> str | None:
    """The network interface by which this machine reaches `address`; None where that cannot be told, and gloo looks for itself."""
    if is_loopback(address):
        return LOOPBACK_INTERFACE
    family, _, _, _, target = socket.getaddrinfo(address, ANY_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)  # sends nothing; it only chooses the route
        except OSError as fault:
            raise RendezvousFailed(f"{address}, where the ranks meet, cannot be reached from here: {fault}.") from None
        return interface_of(str(probe.getsockname()[0]))


def interface_of(own: str) -> str | None:
    """The network interface of one of this machine's addresses."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address.partition("%")[0] == own for each in addresses):
            return str(name)
    return None
