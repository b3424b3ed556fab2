"""One service in a box (`box.py`): what its image and `compose.yaml` give it, and nothing else.

What is not Docker's here: the interpreter and the packages are this virtual environment's, of which a box sees those of its image's extras
only.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.docker.compose import ROOT, Service, bytes_of
from tests.docker.packages import make_site
from tests.house import eventually
from workers.environment import cache_folder

SITE: Final = Path(next(each for each in sys.path if each.endswith("site-packages")))
REAL_SITE: Final = Path("/packages")
"""Where a box has all packages; in its SITE are links to those it may see."""
SYSTEM: Final = ("usr", "bin", "lib", "lib64", "sbin")
SETTINGS: Final = ("etc/ld.so.cache", "etc/nsswitch.conf", "etc/ssl", "etc/alternatives")
PATH: Final = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOKEN: Final = "a-secret-of-the-operator"


def impossible() -> str | None:
    """Why no box can be made here; None where one can."""
    if os.geteuid() != 0:
        return "only root may give a process namespaces and a user of its own"
    missing = [tool for tool in ("ip", "mount", "nsenter", "setpriv", "unshare") if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} of iproute2 or util-linux: not installed"
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else None


@dataclass
class Container:
    """One box that runs."""

    name: str
    service: Service
    addresses: dict[str, str]
    """Of each of its networks."""
    words: Path
    process: subprocess.Popen[bytes]
    first: int
    """The first process inside, as seen from outside."""

    def run(self, command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
        """`docker compose exec`, as the service's user."""
        into = ["nsenter", "--target", str(self.first), "--mount", "--uts", "--ipc", "--net", "--pid", "--root"]
        whole = [*into, "env", "--chdir=/", *as_user(self.service), *command]
        return subprocess.run(
            whole, env=environment(self.name, self.service), capture_output=True, text=True, timeout=seconds
        )

    def healthy(self) -> bool:
        assert self.process.poll() is None, (
            f"{self.name} ended with {self.process.returncode}:\n{self.words.read_text()}"
        )
        return self.run(self.service.check, self.service.check_seconds).returncode == 0

    def stop(self) -> int:
        """`docker compose stop`: SIGTERM, and its exit code within the time it is given."""
        self.process.terminate()
        return self.process.wait(self.service.grace_seconds)


def environment(name: str, service: Service) -> dict[str, str]:
    return {"PATH": PATH, "HOSTNAME": name} | service.environment


def as_user(service: Service) -> list[str]:
    """What makes a command run as the service's user, and with as little power as the file says."""
    user, group = service.asked["user"].split(":")
    words = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups"]
    if service.asked.get("cap_drop") == ["ALL"]:
        words += ["--inh-caps=-all", "--bounding-set=-all"]
    if "no-new-privileges:true" in service.asked.get("security_opt", []):
        words += ["--no-new-privs"]
    return [*words, "--"]


def start(
    name: str, service: Service, folder: Path, cables: dict[str, tuple[str, str]], hosts: list[str], switch: int
) -> Container:
    """Begin the service. `cables`: of each of its networks the bridge, in the namespace of the process `switch`, and its address there."""
    place = folder / name
    (place / "root").mkdir(parents=True)
    box: dict[str, Any] = {
        "root": str(place / "root"),
        "note": str(place / "first"),
        "hostname": name,
        "switch": str(switch),
        "networks": list(cables.values()),
        "read_only": service.asked.get("read_only", False),
        "tmpfs": [_tmpfs(each) for each in service.asked.get("tmpfs", [])]
        + [("dev/shm", f"mode=1777,size={bytes_of(service.asked.get('shm_size', '64mb'))}")],
        "files": {
            "etc/hosts": "\n".join(["127.0.0.1 localhost", *hosts, ""]),
            "etc/passwd": "root:x:0:0::/root:/bin/sh\ntidemill:x:10001:10001::/tmp:/usr/sbin/nologin\n",
            "etc/group": "root:x:0:\ntidemill:x:10001:\n",
        },
        "links": {each: os.readlink(f"/{each}") for each in SYSTEM if os.path.islink(f"/{each}")},
        "binds": _image(service, place) + _volumes(service, folder, name) + _secrets(service, folder),
        "folder": "/",
        "environment": environment(name, service),
        "command": [*as_user(service), *service.command],
    }
    (place / "box.json").write_text(json.dumps(box))
    with (place / "words").open("wb") as log:
        # Should the tests be killed, so are the boxes.
        command = ["setpriv", "--pdeathsig", "KILL", sys.executable, str(Path(__file__).with_name("box.py"))]
        process = subprocess.Popen([*command, str(place / "box.json")], stdout=log, stderr=log)
    addresses = {network: address for network, (_, address) in cables.items()}
    return Container(name, service, addresses, place / "words", process, eventually(lambda: _inside(place), 30))


def _inside(place: Path) -> int:
    """The first process of a box once it has moved into its root; 0 before."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((place / "first").read_text())
        return pid if os.readlink(f"/proc/{pid}/root") == str(place / "root") else 0
    return 0


def _tmpfs(asked: str) -> tuple[str, str]:
    name, _, options = asked.partition(":")
    return name.lstrip("/"), options or "mode=1777"


def _image(service: Service, place: Path) -> list[tuple[str, str, bool]]:
    """The system, the interpreter, the packages of its extras, and what its Dockerfile copies: source, place, read-only."""
    make_site(service.extras, place / "site", REAL_SITE)
    prefix = Path(sys.prefix)
    shown = [
        f"/{each}" for each in (*SYSTEM, *SETTINGS) if os.path.exists(f"/{each}") and not os.path.islink(f"/{each}")
    ]
    shown += [sys.base_prefix, str(prefix / "bin"), str(prefix / "pyvenv.cfg")]
    shown += [str(ROOT / each) for each in service.dockerfile.copied]
    placed = {each: each for each in shown} | {str(SITE): str(REAL_SITE), str(place / "site"): str(SITE)}
    return [(source, target.lstrip("/"), True) for source, target in placed.items()]


def _volumes(service: Service, folder: Path, name: str) -> list[tuple[str, str, bool]]:
    """Each a folder, which belongs to whom its place in the image belongs."""
    binds = []
    for target, volume in sorted(service.volumes.items()):
        kept = folder / "volumes" / (volume or f"{name}{target.replace('/', '-')}")
        if not kept.exists():
            if volume == "numba" and (cache_folder() / "numba").exists():  # as a first start would have left it
                shutil.copytree(cache_folder() / "numba", kept)
            kept.mkdir(parents=True, exist_ok=True)
            if target in service.dockerfile.owned:
                for each in (kept, *kept.rglob("*")):
                    os.chown(each, 10001, 10001)
        binds.append((str(kept), target.lstrip("/"), False))
    return binds


def _secrets(service: Service, folder: Path) -> list[tuple[str, str, bool]]:
    binds = []
    for secret in service.asked.get("secrets", []):
        kept = folder / "secrets" / secret
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(TOKEN + "\n")
        binds.append((str(kept), f"run/secrets/{secret}", True))
    return binds
