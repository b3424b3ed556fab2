"""The door between a job's child and its driver: packets of JSON with at most one parcel each.

The child says `share` (what all pieces of a batch need), `piece` (one of them) and `end`; the driver says `slots` (how many pieces the
cluster takes at once), `done` with a result, `failed` with a problem.
"""

import json
import socket
from typing import Any, Final

from workers.spread.parcel import Parcel

MAX_PACKET: Final = 1 << 16


class DoorClosed(Exception):
    """The other side has ended."""


class Door:
    """One side. Sending and receiving may be done by different threads."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel

    @classmethod
    def pair(cls) -> tuple["Door", "Door"]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), cls(theirs)

    def send(self, message: dict[str, Any], parcel: Parcel | None = None) -> None:
        """Raises DoorClosed."""
        try:
            descriptors = [parcel.descriptor] if parcel else []
            socket.send_fds(self.channel, [json.dumps(message).encode()], descriptors)
        except OSError as fault:
            raise DoorClosed from fault

    def receive(self) -> tuple[dict[str, Any], Parcel | None]:
        """The next packet. Raises DoorClosed."""
        try:
            packet, descriptors, _, _ = socket.recv_fds(self.channel, MAX_PACKET, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError as fault:
            raise DoorClosed from fault
        if not packet:
            raise DoorClosed
        return json.loads(packet), Parcel(descriptors[0]) if descriptors else None

    def close(self) -> None:
        self.channel.close()

    def hang_up(self) -> None:
        """End it for both sides; a thread that waits in `receive` wakes."""
        try:
            self.channel.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already
