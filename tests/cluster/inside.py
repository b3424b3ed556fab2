"""The first process of one host: `python inside.py NAME KEEP…`, started by `namespaces.py` in namespaces of its own.

It takes the host's name, makes every disk read-only and puts empty folders over the writable ones, so that what one host writes no other
can read. The folders named by KEEP, of this checkout and its Python, stay to be read where such an empty folder would hide them. Then it
says `ready` and waits for its standard input to close. All that runs on the host ends with it: it is the first of its process namespace.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OWN = ("/tmp", "/var/tmp", "/run", "/srv", "/dev/shm")
STAGE = "/mnt"
KERNELS = frozenset(
    {"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "fusectl"}
)
KERNELS |= {"hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "securityfs", "sysfs", "tracefs"}
"""File systems that are no disks."""


def do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


def make_read_only() -> None:
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    for _, folder, kind, options, *_ in lines:
        if kind not in KERNELS and "rw" in options.split(",") and not is_below(folder, OWN):
            do("mount", "-n", "-o", f"remount,bind,ro,{kept_flags(options)}", folder)


def kept_flags(options: str) -> str:
    """What a mount in a user namespace must not lose."""
    return ",".join(flag for flag in options.split(",") if flag in ("nosuid", "nodev", "noexec", "relatime", "noatime"))


def give_own_folders(keep: Sequence[str]) -> None:
    for folder in OWN:
        do("mount", "-n", "-t", "tmpfs", "own", STAGE)
        for kept in keep:
            if is_below(kept, (folder,)):
                place = Path(STAGE, Path(kept).relative_to(folder))
                place.mkdir(parents=True, exist_ok=True)
                do("mount", "-n", "--bind", "-o", "ro", kept, str(place))
        Path(STAGE).chmod(0o1777)
        do("mount", "-n", "--move", STAGE, folder)


def is_below(folder: str, others: Sequence[str]) -> bool:
    return any(Path(folder).is_relative_to(other) for other in others)


def main() -> None:
    name, *keep = sys.argv[1:]
    socket.sethostname(name)
    do("mount", "-n", "--make-rprivate", "/")
    do("ip", "link", "set", "lo", "up")
    make_read_only()
    give_own_folders(keep)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what its processes leave behind comes to the first one
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
