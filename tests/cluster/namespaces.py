"""Hosts that are namespaces of this machine: each with a network address, a name, processes and folders of its own, on one switch.

Nothing of them is to be seen from the machine's own network, and nothing stays: a host's processes end with its first one, which ends
when this process does, and its network goes with its processes.
"""

import contextlib
import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.processes import below, says
from workers.environment import cache_folder

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
KEEP = tuple(dict.fromkeys(map(str, (ROOT, Path(sys.prefix), Path(sys.base_prefix), cache_folder()))))
"""What the hosts read of this machine's disk: this code and its Python, as if it were installed on each."""
HOST_NAMESPACES = ("net", "uts", "ipc", "mount", "pid")
SETTLE_SECONDS = 30.0
PREFIX_BITS = 24
CORES = sorted(os.sched_getaffinity(0))


class Impossible(Exception):
    """This machine does not allow namespaces to be made."""


@dataclass
class Program:
    """A command that runs on a host, and what it printed."""

    process: subprocess.Popen[bytes]
    words: Path

    def family(self) -> list[psutil.Process]:
        """Its processes as this machine numbers them; the first is the command's own."""
        return below(self.process.pid)

    def named(self, *words: str) -> psutil.Process:
        """The first of its processes whose command line has these words one after the other."""
        for each in self.family():
            if says(each, *words):
                return each
        raise AssertionError(f"nothing like {' '.join(words)!r} runs; its words: {self.said()[-2000:]}")

    def said(self) -> str:
        return self.words.read_text(errors="replace")


@dataclass
class Host:
    """One host of a network. `pid`: its first process, as this machine numbers it."""

    name: str
    address: str
    pid: int
    link: str
    network: "Network"
    cores: Collection[int] = field(default_factory=lambda: CORES)
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, script: str, words: Path, **environment: str) -> Program:
        """Begin to run a shell script in this checkout, on this host alone."""
        with words.open("ab") as log:
            process = subprocess.Popen(
                self._command(script),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._environment(environment),
                preexec_fn=self._stay_on_its_cores,
            )
        self.network.stack.callback(_end, process)
        return Program(process, words)

    def run(self, script: str, seconds: float = 60, **environment: str) -> str:
        """Run a shell script, and return what it printed; it must succeed."""
        done = subprocess.run(
            self._command(script),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env=self._environment(environment),
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _command(self, script: str) -> list[str]:
        there = f"cd {shlex.quote(str(ROOT))}\n{script}"  # as that host sees it, which this process does not
        return [*self.network.enter(self.pid, HOST_NAMESPACES), "bash", "-eu", "-c", there]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, "HOME": "/srv", "TMPDIR": "/tmp", **self.environment, **more}

    def _stay_on_its_cores(self) -> None:
        os.sched_setaffinity(0, self.cores)

    def cut(self) -> None:
        """Pull the plug of its link, at the switch."""
        self.network.ip("link", "set", self.link, "down")

    def heal(self) -> None:
        self.network.ip("link", "set", self.link, "up")


class Network:
    """A switch, and the hosts on it."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack = stack
        self.hosts: dict[str, Host] = {}
        own = () if os.geteuid() == 0 else ("user",)
        self._user = bool(own)
        flags = ("--map-root-user",) if own else ()
        self._switch = self._first(
            ["unshare", *map("--{}".format, ("net", *own)), *flags], "sh", "-c", "echo ready; exec cat"
        )
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "switch", "type", "bridge")
        self.ip("link", "set", "switch", "up")

    def take_part(self, address: str) -> None:
        """Give the switch itself an address: where commands run that are no host's."""
        self.ip("address", "add", f"{address}/{PREFIX_BITS}", "dev", "switch")

    def add(self, name: str, address: str, cores: Collection[int] = CORES) -> Host:
        """One more host, on the switch."""
        enter = self.enter(self._switch, ()) if self._user else []
        unshare = ["unshare", *map("--{}".format, HOST_NAMESPACES), "--fork", "--kill-child", "--mount-proc"]
        pid = self._first([*enter, *unshare], sys.executable, str(HERE / "inside.py"), name, *KEEP)
        host = self.hosts[name] = Host(name, address, pid, f"to-{name}", self, cores)
        self.ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.ip("link", "set", host.link, "master", "switch", "up")
        host.run(f"ip address add {address}/{PREFIX_BITS} dev eth0; ip link set eth0 up")
        return host

    def ip(self, *words: str) -> None:
        done = subprocess.run([*self.beside(), "ip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Impossible(f"`ip {' '.join(words)}` said {done.stderr.strip()}")

    def beside(self) -> list[str]:
        """The beginning of a command that runs on the switch's network, with this machine's folders and processes."""
        return self.enter(self._switch, ("net",))

    def enter(self, pid: int, namespaces: Collection[str]) -> list[str]:
        user = ["--user", "--preserve-credentials"] if self._user else []
        return ["nsenter", "--target", str(pid), *user, *map("--{}".format, namespaces)]

    def _first(self, unshare: list[str], *command: str) -> int:
        """Start the first process of new namespaces, which ends with this process or this network; its pid."""
        process = subprocess.Popen(
            [*unshare, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/"
        )
        self.stack.callback(_end, process)
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        if line != "ready":
            raise Impossible(f"`{' '.join(unshare[:2])} …` said {line!r}")
        family = below(process.pid)
        return family[-1].pid if family else process.pid


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that this one started; closing its input is enough for some."""
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
    if process.poll() is None:
        family = below(process.pid)
        for each in [*family, process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
    process.wait(timeout=SETTLE_SECONDS)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A switch with no host yet; whatever happens, all of it is gone afterwards. Raises Impossible."""
    with contextlib.ExitStack() as stack:
        yield Network(stack)


@functools.cache
def possible() -> str | None:
    """Why this machine does not allow namespaces to be made; None where it does, which is found out by making some."""
    try:
        with network() as switch:
            switch.add("trial", "10.77.0.99").run("true")
    except (OSError, Impossible, AssertionError) as reason:
        return f"network namespaces cannot be made here: {reason}"
    return None
