"""The head of a Ray cluster on this machine alone: `python -m workers.ray_head --cpus 4 --folder DIR`.

`ray start` leaves agents behind when it is killed, and its temporary folder always. This process is the one that holds them all:
it leads, it inherits whatever they start (a subreaper), and when it is told to end, when its lifeline is cut, or when Ray ends
by itself, it kills every process and removes the folder. It listens on 127.0.0.1 only, and asks everybody for the token.

In DIR it leaves, for as long as it lives, the secret that it asks for (`token`, 0600) and a note (`head.json`): its temporary folder at
once, and when it is up its address and what whoever joins must have in the environment.
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from workers import lifeline
from workers.nursery import PR_SET_CHILD_SUBREAPER, child_pids, kill_tree
from workers.ray_patience import PATIENT

log = logging.getLogger(__name__)

# Ray's sockets have paths of some 60 characters beyond this, and a socket's path may have 107: so not under HOME or TMPDIR.
SHORT: Final = "/tmp"  # noqa: S108 - a folder of our own is made in it, readable by nobody else
PREFIX: Final = "tidemill-ray-"
INNER: Final = "r"
"""Ray opens its folder to everybody, so it lies in one that is not."""
SECRET: Final = "token"  # noqa: S105 - the name of a file
NOTE: Final = "head.json"
OBJECT_STORE_BYTES: Final = 512 << 20
LOOK_SECONDS: Final = 0.05
LOOPBACK: Final = {
    # Its name tells where Ray's authors needed it: it keeps a cluster, and whoever joins it, on 127.0.0.1.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
}
SETTINGS: Final = {
    # What the children hold is not Ray's to kill for; our own limits judge memory.
    "RAY_memory_monitor_refresh_ms": "0",
    # Processes that wait for tasks: there are none here, only actors, each in a process of its own.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    **PATIENT,
}


def command(folder: Path, cpus: int) -> list[str]:
    return [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        *("--node-ip-address", "127.0.0.1", "--port", "0", "--dashboard-agent-listen-port", "0"),
        *("--include-dashboard", "false", "--include-log-monitor", "false", "--no-monitor", "--disable-usage-stats"),
        *("--temp-dir", str(folder), "--num-cpus", str(cpus), "--object-store-memory", str(OBJECT_STORE_BYTES)),
        *("--log-style", "record"),
    ]


def own_prefix(folder: Path) -> str:
    """How the temporary folders begin of the head that leaves its note in `folder`: no two that run at once have the same."""
    return f"{PREFIX}{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]}-"


class Head:
    """`ray start`, all it starts, and its folder."""

    def __init__(self, cpus: int, folder: Path) -> None:
        self._cpus, self._token, self._note = cpus, folder / SECRET, folder / NOTE
        self._prefix = own_prefix(folder)
        self._joining = {**LOOPBACK, "RAY_AUTH_TOKEN_PATH": str(self._token)}
        self._told = False

    def end(self) -> None:
        # A plain flag: a signal's handler that sets an Event waits for ever when it interrupts that Event's own wait.
        self._told = True

    def run(self) -> int:
        """Until told to end, or until Ray ends. Returns 0, or Ray's exit code."""
        with self._own_folder() as folder:
            words = folder / "start.log"
            with words.open("wb") as stream:
                ray = subprocess.Popen(
                    command(folder / INNER, self._cpus),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    env=_without_addresses() | SETTINGS | self._joining,
                    preexec_fn=_die_with_parent,  # if this process is killed with -9, which nothing else would notice
                )
            try:
                code = self._watch(folder, ray.pid)
            finally:
                kill_children()
            if code is None:
                return 0
            last = words.read_text(errors="replace").splitlines()[-20:]
            log.error("the Ray head ended with code %s; its last words:\n%s", code, "\n".join(last))
            return code or 1

    def _watch(self, folder: Path, pid: int) -> int | None:
        """The exit code of Ray; None when told to end before it does."""
        address = folder / INNER / "ray_current_cluster"  # written once the head is up
        announced = False
        while not self._told:
            time.sleep(LOOK_SECONDS)
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if ended[0] == pid:
                    return os.waitstatus_to_exitcode(ended[1])
            if not announced and address.exists() and (where := address.read_text().strip()):
                self._write_note({"folder": str(folder), "address": where, "environment": self._joining})
                announced = True
        return None

    @contextlib.contextmanager
    def _own_folder(self) -> Iterator[Path]:
        self._clear_up_after_an_earlier_head()
        folder = Path(tempfile.mkdtemp(prefix=self._prefix, dir=SHORT))
        try:
            self._write_note({"folder": str(folder)})
            self._write_token()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._note.unlink(missing_ok=True)
            self._token.unlink(missing_ok=True)

    def _clear_up_after_an_earlier_head(self) -> None:
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
            left = Path(json.loads(self._note.read_text())["folder"])
            if left.parent == Path(SHORT) and left.name.startswith(self._prefix):
                shutil.rmtree(left, ignore_errors=True)

    def _write_token(self) -> None:
        self._token.unlink(missing_ok=True)
        with open(os.open(self._token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_hex(32))

    def _write_note(self, facts: dict[str, object]) -> None:
        temporary = self._note.with_suffix(".partial")
        temporary.write_text(json.dumps(facts))
        temporary.rename(self._note)


def kill_children() -> None:
    """All of them, and those that they leave to their subreaper."""
    while pids := child_pids(os.getpid()):
        for pid in pids:
            kill_tree(pid)
            os.waitpid(pid, 0)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(lifeline.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _without_addresses() -> dict[str, str]:
    """This environment, less what would lead `ray start` to some other cluster."""
    return {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "RAY_NAMESPACE")}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.ray_head", description=__doc__)
    parser.add_argument("--cpus", type=int, required=True, help="what its actors may take, all together")
    parser.add_argument("--folder", type=Path, required=True, help="where to leave its secret and its note")
    parser.add_argument("--lifeline", action="store_true", help="end when standard input closes")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    head = Head(options.cpus, options.folder.resolve())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: head.end())
    if options.lifeline:
        lifeline.watch(head.end)
    return head.run()


if __name__ == "__main__":
    sys.exit(main())
