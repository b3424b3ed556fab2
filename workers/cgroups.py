"""What Linux's control groups leave this process of its machine: `docker run --cpus 2 --memory 4g`, for instance."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

NO_LIMIT: Final = 1 << 60
"""Version 1 says "no limit" as a number beyond all memory."""
V1_MEMORY: Final = ("memory",)
V1_CPU: Final = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


def memory_bytes(root: Path = Path("/")) -> int | None:
    """The least of the limits on this process's group and all above it; None where there is none."""
    found = [_number(file) for file in _files(root, "memory.max", V1_MEMORY, "memory.limit_in_bytes")]
    return min((limit for limit in found if limit and limit < NO_LIMIT), default=None)


def cores(root: Path = Path("/")) -> float | None:
    """How many cores' worth of time this process's group may use; None where there is no quota."""
    shares = [_share_v2(file) for file in _files(root, "cpu.max", (), "")]
    for quota in _files(root, "", V1_CPU, "cpu.cfs_quota_us"):
        told, period = _number(quota), _number(quota.with_name("cpu.cfs_period_us"))
        shares.append(told / period if told and period else None)
    return min((share for share in shares if share), default=None)


def _share_v2(file: Path) -> float | None:
    """`cpu.max` is "200000 100000", or "max 100000"."""
    words = _words(file)
    if len(words) != 2 or not all(word.isdigit() for word in words) or not int(words[1]):
        return None
    return int(words[0]) / int(words[1])


def _files(root: Path, v2: str, controllers: tuple[str, ...], v1: str) -> Iterator[Path]:
    """The files of that name, of this process's group and of those above it, as far as they can be seen from here."""
    mounted = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        if not names and v2:
            yield from _upwards(mounted, group, v2)
        elif names and v1 and set(names.split(",")) & set(controllers):
            # Mounted under all its names, with links from each of them: one will do.
            folder = next((mounted / each for each in (names, *controllers) if (mounted / each).is_dir()), mounted)
            yield from _upwards(folder, group, v1)


def _upwards(mounted: Path, group: str, name: str) -> Iterator[Path]:
    """From the group to the root. In a container the group's name may be the host's, and only the root be there."""
    parts = [part for part in group.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        yield mounted.joinpath(*parts[:depth], name)


def _number(file: Path) -> int | None:
    """What the file says, where that is a number above 0: "max" and -1 are no limits."""
    words = _words(file)
    return int(words[0]) if len(words) == 1 and words[0].isdigit() else None


def _words(file: Path) -> list[str]:
    lines = _lines(file)
    return lines[0].split() if lines else []


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
