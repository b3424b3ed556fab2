"""A warm parent that forks a fresh, killable child for each piece of work that cannot be interrupted (decision 7).

STUMPY's kernels hold the GIL and know no cancel, and a new process needs 25 s to compile them. So one process imports and warms
them once, stays single-threaded, and forks: a child starts in milliseconds, leads a session of its own, and dies when told to.

Spoken to over a Unix socket of packets, by `workers.nursery_client`. One request is one JSON packet, with file descriptors for a fork:
the payload, the pipe on which the child reports, and what else it shall be born with. The nursery answers `ready` once, then `exit` for
each child that ended. It ends, with everything it forked, when that socket closes: a worker killed with -9 leaves nothing behind.

    python -m workers.nursery --socket FD --preload package.module:function …
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workers import child
from workers.births import Birth
from workers.contract import call_by_name

PR_SET_CHILD_SUBREAPER = 36
MAX_PACKET = 1 << 16
MAX_DESCRIPTORS = 16


@dataclass
class Nursery:
    """The parent's loop: one thread, one socket, one pidfd for each living child."""

    channel: socket.socket
    children: dict[int, str] = field(default_factory=dict)
    """pid of a child → the name its worker gave it."""
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def serve(self) -> None:
        self.selector.register(self.channel, selectors.EVENT_READ)
        self.send({"op": "ready", "pid": os.getpid()})
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is not self.channel:
                    self.bury(key.fd, key.data)
                elif not self.obey():
                    self.kill_everything()
                    return

    def obey(self) -> bool:
        """Carry out one request; False when the worker is gone."""
        try:
            packet, descriptors, _, _ = socket.recv_fds(
                self.channel, MAX_PACKET, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return False
        if not packet:
            return False
        request = json.loads(packet)
        match request["op"]:
            case "fork":
                self.fork(request, *descriptors)
            case "kill":
                for pid in self.named(request["name"]):
                    kill_tree(pid)
            case "signal":
                for pid in self.named(request["name"]):
                    os.kill(pid, request["number"])  # a child that was not waited for: nobody else has its number
        return True

    def named(self, name: str) -> list[int]:
        """The child of that name, where it has not ended."""
        return [pid for pid, given in self.children.items() if given == name]

    def fork(self, request: dict[str, Any], payload: int, report: int, *born_with: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            # Everything of the parent's that a child must not hold: the socket to the worker, the other children's pidfds.
            self.channel.close()
            for key in list(self.selector.get_map().values()):
                if isinstance(key.fileobj, int):
                    os.close(key.fileobj)
            self.selector.close()
            birth = Birth(request["call"], payload, report, request["log"], born_with)
            child.become(birth, request["fresh"])
        for descriptor in (payload, report, *born_with):
            os.close(descriptor)
        self.children[pid] = request["name"]
        self.selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)

    def bury(self, pidfd: int, pid: int) -> None:
        """A child ended: end what it left behind, then say how it ended."""
        self.selector.unregister(pidfd)
        os.close(pidfd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        name = self.children.pop(pid)
        self.kill_orphans()
        self.send({"op": "exit", "name": name, "code": code})

    def kill_orphans(self) -> None:
        """Being a subreaper, the nursery inherits whatever a dead child had started, wherever that moved its session."""
        while strays := [pid for pid in child_pids(os.getpid()) if pid not in self.children]:
            for pid in strays:
                kill_tree(pid)
                os.waitpid(pid, 0)

    def kill_everything(self) -> None:
        for pid in list(self.children):
            kill_tree(pid)
            os.waitpid(pid, 0)
            del self.children[pid]
        self.kill_orphans()

    def send(self, message: dict[str, Any]) -> None:
        # Where the worker is gone, the next read says so and ends us.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(json.dumps(message).encode())


def child_pids(parent: int) -> list[int]:
    """The living or unburied children of `parent`, from /proc."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    # The command's name may hold spaces and brackets; what follows its last bracket is "state ppid …".
                    ppid = int(stat.read().rpartition(b")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if ppid == parent:
                found.append(int(entry))
    return found


def kill_tree(pid: int) -> None:
    """SIGKILL for `pid` and all its descendants, parents first so that none can start another.

    No number can have been given to a stranger meanwhile: `pid` is a child the caller has not waited for, and a stopped parent
    buries none of its own.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # Stopped first: the list of children of a stopped process is final.
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        for descendant in child_pids(pid):
            kill_tree(descendant)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--preload", action="append", default=[])
    options = parser.parse_args()
    # Numba's threads sleep in C, holding no lock of Python's, whenever this process forks; that is what makes it safe here.
    warnings.filterwarnings("ignore", r".*multi-threaded, use of fork\(\)", DeprecationWarning)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A terminal's Ctrl-C reaches the whole group; the worker decides what ends when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=options.socket)
    with ending_with(channel):
        for dotted in options.preload:
            call_by_name(dotted)
    Nursery(channel).serve()


@contextlib.contextmanager
def ending_with(channel: socket.socket) -> Iterator[None]:
    """While this process warms, compiling for a minute perhaps, it reads nothing: have the kernel say when the worker is gone.

    A signal rather than a thread, for the process must fork later.
    """

    def look(*_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            if not channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                os._exit(0)

    signal.signal(signal.SIGIO, look)
    fcntl.fcntl(channel, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(channel, fcntl.F_GETFL)
    fcntl.fcntl(channel, fcntl.F_SETFL, flags | os.O_ASYNC)
    look()  # it may have gone before anybody watched
    yield
    fcntl.fcntl(channel, fcntl.F_SETFL, flags)
    signal.signal(signal.SIGIO, signal.SIG_DFL)


if __name__ == "__main__":
    main()
