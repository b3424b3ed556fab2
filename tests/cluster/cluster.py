"""README's cluster: a server, and two hosts that compute, started by README's commands; and a client who is on none of them."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import psutil

from tests.cluster.commands import commands
from tests.cluster.namespaces import CORES, HERE, Host, Network, Program, network
from tests.house import READY, Api, eventually
from workers.environment import numba_cache_folder

SERVER, ONE, TWO, DESK = "10.77.0.1", "10.77.0.11", "10.77.0.12", "10.77.0.254"
BOTH = f"on {ONE} and {TWO}"
URL = f"http://{SERVER}:8000"
JOIN_TOKEN = "/srv/tidemill/join-token"
COPIED_TOKEN = "/srv/tidemill-join-token"
CACHE = "/srv/cache"
START_SECONDS = 120


class Client(Api):
    """An HTTP client of the cluster's server: with a key, and through a socket that leads to its network."""

    def __init__(self, socket: Path, key: str) -> None:
        httpx.Client.__init__(
            self,
            base_url=URL,
            transport=httpx.HTTPTransport(uds=str(socket)),
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
        )


class Cluster:
    """The hosts and what runs there."""

    url = URL

    def __init__(self, hosts: Network, words: Path, socket: Path) -> None:
        self.network, self.words, self.socket = hosts, words, socket
        hosts.take_part(DESK)
        self.server = hosts.add("server", SERVER)
        # A core each, so that a worker takes one thread, as `--threads` says on machines of its own.
        self.one = hosts.add("one", ONE, CORES[:1])
        self.two = hosts.add("two", TWO, CORES[-1:])
        self.workers: dict[str, Program] = {}
        self.serving: Program | None = None
        self.starts = 0
        self.key = ""
        self.server.environment["TIDEMILL_ALLOW_SOURCE_UPLOAD"] = "true"
        for host in (self.one, self.two):
            host.environment["TIDEMILL_CACHE_DIR"] = CACHE
            # What its installation would have compiled.
            host.run(f"mkdir -p {CACHE}/numba; cp -r {numba_cache_folder(1)} {CACHE}/numba")

    # ---- what one types on the hosts --------------------------------------------------------------------------------

    def serve(self, *places: str) -> None:
        """Start the server; it is ready once a worker has joined."""
        self.starts += 1
        script = typed(places or (f"on {SERVER}",))
        self.serving = self.server.start(script, self.words / f"server-{self.starts}.log")

    def make_key(self) -> None:
        """The first key, and the secret that workers join with on the hosts that compute."""
        eventually(lambda: self.server_has(JOIN_TOKEN), START_SECONDS)
        self.key = self.server.run(commands(f"on {SERVER}, beside it")).strip()
        token = self.server.run(f"cat {JOIN_TOKEN}").strip()
        for host in (self.one, self.two):
            host.run(f"umask 077; echo {token} > {COPIED_TOKEN}")

    def server_has(self, path: str) -> bool:
        return self.server.run(f"test -s {path} && echo yes || true").strip() == "yes"

    def start(self, host: Host, *places: str) -> Program:
        """Begin what README says to type there, one after the other in one terminal."""
        name = re.sub(r"\W+", "-", places[-1])
        return host.start(typed(places), self.words / f"{host.name}-{name}.log")

    def join(self, host: Host, *places: str) -> None:
        """Start the host's worker."""
        self.workers[host.name] = self.start(host, *(places or (BOTH,)))

    def wait_until_whole(self) -> None:
        """Until the server is ready and knows a worker on each host."""
        serving = self.serving
        assert serving is not None
        eventually(lambda: READY in serving.said() or serving.process.poll() is not None, START_SECONDS, pause=0.2)
        assert serving.process.poll() is None, serving.said()
        with self.api() as api:
            eventually(lambda: sorted(w["host"] for w in workers_up(api)) == ["one", "two"], START_SECONDS, pause=0.2)

    # ---- what happens to them ---------------------------------------------------------------------------------------

    def worker(self, host: str) -> psutil.Process:
        return self.workers[host].named("-m", "workers")

    def kill_server(self) -> None:
        assert self.serving is not None
        self.serving.named("-m", "app").kill()
        self.serving.process.wait(timeout=10)

    def api(self) -> Client:
        return Client(self.socket, self.key)

    def beside(self, script: str) -> str:
        """What a shell script prints that runs on the network, and on none of its hosts."""
        command = [*self.network.beside(), "bash", "-eu", "-c", script]
        done = subprocess.run(
            command,
            env={"KEY": self.key, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def typed(places: Sequence[str]) -> str:
    return "".join(map(commands, places))


def workers_up(api: Api) -> list[dict]:
    return [worker for engine in api.get("/capabilities").json()["engines"] for worker in engine["workers"]]


@contextlib.contextmanager
def hosts(words: Path) -> Iterator[Cluster]:
    """The three hosts, with nothing running on them yet."""
    compiled = subprocess.run(
        [sys.executable, "-m", "workers.compile", "1"], capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr
    with network() as switch, tempfile.TemporaryDirectory(prefix="tidemill-") as folder:
        socket = Path(folder, "server.sock")
        cluster = Cluster(switch, words, socket)
        forwarder = [*switch.beside(), sys.executable, str(HERE / "forwarder.py"), str(socket), SERVER, "8000"]
        with subprocess.Popen(forwarder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as passing:
            assert passing.stdout is not None
            assert passing.stdout.readline() == b"ready\n"
            try:
                yield cluster
            finally:
                passing.communicate(timeout=10)
