"""All services of `compose.yaml` as processes, each its very command in a box (`boxes.py`), on networks of their own.

The bridges are in a namespace that stands for the host; there the tests' client is, too.
"""

import contextlib
import ctypes
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.docker import boxes
from tests.docker.boxes import Container
from tests.docker.compose import COMPOSE, Service
from tests.house import Api, eventually

NEW_NETWORK: Final = 0x40000000
API_OUTSIDE: Final = "10.11.0.2"
"""The API's address on the second network, which leads outside: it is the first there."""


@contextlib.contextmanager
def on_the_network_of(pid: int) -> Iterator[None]:
    """This thread's sockets are made in the network namespace of `pid` meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = f"/proc/self/task/{threading.get_native_id()}/ns/net"
    with open(own) as here, open(f"/proc/{pid}/ns/net") as there:
        assert libc.setns(there.fileno(), NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(here.fileno(), NEW_NETWORK) == 0


@dataclass
class Stack:
    """What `docker compose` would have running."""

    services: dict[str, Service]
    networks: list[str]
    folder: Path
    switch: subprocess.Popen[bytes]
    """A process in the namespace with the bridges."""
    containers: list[Container] = field(default_factory=list)
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each network: names and their address."""

    def up(self, scale: dict[str, int], names: list[str]) -> None:
        """Start these services in the order in which they wait for one another, and wait until all are healthy."""
        todo = list(names)
        while todo:
            name = next(each for each in todo if not set(self.services[each].after) & set(todo))
            for other, condition in self.services[name].after.items():
                assert condition == "service_healthy"
                for container in self.of(other):
                    self.wait(container)
            for number in range(scale.get(name, 1)):
                self._start(self.services[name], f"{name}-{number + 1}")
            todo.remove(name)
        for container in self.containers:
            self.wait(container)

    def of(self, name: str) -> list[Container]:
        return [each for each in self.containers if each.service.name == name]

    def wait(self, container: Container) -> None:
        """Until it is healthy, by its own check, and no longer than it may take."""
        eventually(container.healthy, container.service.start_seconds, pause=1)

    def restart(self, container: Container) -> None:
        """`docker compose restart`: a new box with the old name, address and volumes."""
        assert container.stop() == 0
        self.containers.remove(container)
        place = self.folder / container.name
        place.rename(place.with_suffix(".before"))
        self._start(container.service, container.name)
        self.wait(self.containers[-1])

    def down(self) -> dict[str, int]:
        """Stop all, those first that others do not wait for. The exit codes."""
        codes = {}
        while self.containers:
            container = self.containers.pop()
            codes[container.name] = container.stop()
        return codes

    def kill(self) -> None:
        for process in [*(each.process for each in self.containers), self.switch]:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def outside(self) -> Iterator[Api]:
        """A client on the host, without a key."""
        address, port = self.of("api")[0].addresses["front"], self.services["api"].asked["ports"][0].rpartition(":")[2]
        assert address == API_OUTSIDE
        with on_the_network_of(self.switch.pid), Api(f"http://{address}:{port}") as api:
            yield api

    def make_key(self) -> str:
        """An operator's, with the command that the head of the file gives."""
        (command,) = re.findall(r"docker compose exec api (.*)", COMPOSE.read_text())
        made = self.of("api")[0].run(command.split(), 60)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def _start(self, service: Service, name: str) -> None:
        cables = {}
        for network in service.asked["networks"]:
            number, known = self.networks.index(network), self.hosts.setdefault(network, {})
            known.setdefault(name, f"10.{number + 10}.0.{len(known) + 2}")
            cables[network] = f"br{number}", known[name]
        # Docker answers for names as containers come and go; here each knows those that were there before it.
        hosts = [
            f"{address} {other.rpartition('-')[0]} {other}"
            for network in cables
            for other, address in self.hosts[network].items()
        ]
        self.containers.append(boxes.start(name, service, self.folder, cables, hosts, self.switch.pid))


@contextlib.contextmanager
def stack_of(services: dict[str, Service], networks: list[str], folder: Path) -> Iterator[Stack]:
    """A host with the bridges and nothing on them; whatever is left on them afterwards is killed."""
    folder.chmod(0o755)
    switch = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
    stack = Stack(services, networks, folder, switch)
    try:
        own = os.readlink("/proc/self/ns/net")
        eventually(lambda: os.readlink(f"/proc/{switch.pid}/ns/net") != own)
        into = ["nsenter", "--net", "--target", str(switch.pid), "ip"]
        for number, _ in enumerate(networks):
            subprocess.run([*into, "link", "add", f"br{number}", "type", "bridge"], check=True)
            subprocess.run([*into, "addr", "add", f"10.{number + 10}.0.1/24", "dev", f"br{number}"], check=True)
            subprocess.run([*into, "link", "set", f"br{number}", "up"], check=True)
        yield stack
    finally:
        stack.kill()
