"""A container without an engine: `python box.py BOX`, a JSON file; it runs one command as a container would.

Namespaces of its own (network, mounts, processes, names), a root that holds only what it is told, read-only where it should be, a user
without capabilities. It is the first process in there: it hands SIGTERM on, buries orphans, and ends as the command does, with everything
else in there. It needs root, Linux, and util-linux's `mount`, `nsenter` and `setpriv`.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

MOUNTS, NAMES, IPC, PROCESSES, NETWORK = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LIBC = ctypes.CDLL(None, use_errno=True)


def own(flags: int) -> None:
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True)


def plug(box: dict[str, Any]) -> None:
    """A cable into each of its networks: a bridge in the namespace of the process `switch`."""
    run("ip", "link", "set", "lo", "up")
    for number, (bridge, address) in enumerate(box["networks"]):
        into = ("nsenter", "--net", "--target", box["switch"])
        cable, end = f"v{os.getpid()}.{number}", f"eth{number}"
        run(*into, "ip", "link", "add", cable, "type", "veth", "peer", "name", end, "netns", str(os.getpid()))
        run(*into, "ip", "link", "set", cable, "master", bridge, "up")
        run("ip", "addr", "add", f"{address}/24", "dev", end)
        run("ip", "link", "set", end, "up")


def bind(source: str | Path, target: Path, read_only: bool) -> None:
    source = Path(source)
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    run("mount", "--bind", source, target)
    if read_only:
        run("mount", "-o", "remount,bind,ro", target)


def furnish(root: Path, box: dict[str, Any]) -> None:
    """Mount all that the container sees below `root`."""
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", root)
    for name, text in box["files"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, target in box["links"].items():
        (root / name).symlink_to(target)
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, read_only=False)
    (root / "dev" / "fd").symlink_to("/proc/self/fd")
    for kind, name, options in (
        ("proc", "proc", "rw"),
        ("sysfs", "sys", "ro"),
        *(("tmpfs", *each) for each in box["tmpfs"]),
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", kind, "-o", f"{options},nosuid,nodev,noexec", kind, root / name)
    for source, name, read_only in box["binds"]:
        bind(source, root / name, read_only)
    if box["read_only"]:
        run("mount", "-o", "remount,bind,ro", root)


def first_process(box: dict[str, Any]) -> int:
    LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    root = Path(box["root"])
    run("mount", "--make-rprivate", "/")
    furnish(root, box)
    os.chroot(root)
    os.chdir(box["folder"])
    service = subprocess.Popen(box["command"], env=box["environment"], stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(service.pid, signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == service.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main() -> int:
    box = json.loads(Path(sys.argv[1]).read_text())
    own(MOUNTS | NAMES | IPC | NETWORK)
    LIBC.sethostname(box["hostname"].encode(), len(box["hostname"]))
    plug(box)
    own(PROCESSES)  # of children
    first = os.fork()
    if first == 0:
        code = 125
        try:
            code = first_process(box)
        finally:
            sys.stderr.flush()
            os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGTERM))
    Path(box["note"]).write_text(str(first))
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
