"""The store at which the ranks of one attempt meet: torch's own, kept by a child of the nursery on a port that nobody can take away.

The driver opens the port and never closes it before the keeper holds it, so there is no moment at which another process could get it; ranks
that come before the keeper serves wait in its line.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from workers import births
from workers.nursery_client import Ending, Nursery
from workers.training.failures_named import PortTaken, RendezvousFailed

log = logging.getLogger(__name__)

KEEP: Final = "workers.training.keeper:keep"
WAITING: Final = 1024
"""How many ranks may stand in line."""
TRIES: Final = 5
PAUSE_SECONDS: Final = 0.2
CONNECT_SECONDS: Final = 30.0


def listen(address: str) -> socket.socket:
    """A socket that listens at a free port of `address` alone. Raises PortTaken, RendezvousFailed."""
    for attempt in range(TRIES):
        try:
            return _bound(address)
        except OSError as fault:
            reason = fault
            log.info("no port at %s: %s", address, fault)
            time.sleep(PAUSE_SECONDS * attempt)
    if isinstance(reason, socket.gaierror) or reason.errno == 99:  # EADDRNOTAVAIL
        raise RendezvousFailed(
            f"The ranks were to meet at {address}, which is no address of this machine ({reason}). The worker's machine must have "
            "the address by which its cluster knows it."
        )
    raise PortTaken(f"No port at {address} was free for the ranks to meet at ({reason}); try the job again.")


def _bound(address: str) -> socket.socket:
    family, _, _, _, target = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.bind(target)
        listening.listen(WAITING)
    except OSError:
        listening.close()
        raise
    return listening


@contextlib.contextmanager
def kept(nursery: Nursery, address: str, log_file: str, on_loss: Callable[[str], None]) -> Iterator[int]:
    """Keep a store at `address` for as long as the context lasts; the value is its port. `on_loss` is told, from another
    thread, when it ends before."""
    with listen(address) as listening:
        port = int(listening.getsockname()[1])
        piece = nursery.fork(KEEP, [address, port], log_file, born_with=[listening.fileno()])
    closing = threading.Event()

    def follow() -> None:
        ending = piece.hear(lambda message: None)
        if not closing.is_set():
            on_loss(_words(ending))

    following = threading.Thread(target=follow, name="keeper", daemon=True)
    following.start()
    try:
        yield port
    finally:
        closing.set()
        piece.kill()
        following.join()


def _words(ending: Ending) -> str:
    told = (ending.answer or {}).get("problem", {}).get("detail") or f"it ended with code {ending.code}"
    return f"The process that keeps the ranks' meeting point ended: {told}"


def keep(address: str, port: int, reporter: Any) -> None:
    """In a child, for ever: serve the store at the port that this child was born with."""
    from torch._C._distributed_c10d import TCPStore

    (descriptor,) = births.born_with
    patience = timedelta(seconds=CONNECT_SECONDS)
    # It owns the descriptor, and serves for as long as the object lives.
    store = TCPStore(address, port, None, True, patience, wait_for_workers=False, master_listen_fd=descriptor)
    while store is not None:
        time.sleep(3600)
