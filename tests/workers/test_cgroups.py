"""What a container leaves a worker of its machine, read from trees of files as Linux and Docker lay them out."""

import os
from pathlib import Path

import psutil
import pytest

from workers import cgroups, hardware

GIB = 1 << 30
NOBODY_SAID = "9223372036854771712"
TREES = {
    "a container with its own namespace": (
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/memory.max": str(2 * GIB),
            "sys/fs/cgroup/cpu.max": "150000 100000",
        },
        (2 * GIB, 1.5),
    ),
    "a container in the host's namespace, where only the root is to be seen": (
        {
            "proc/self/cgroup": "0::/docker/abc",
            "sys/fs/cgroup/memory.max": str(2 * GIB),
            "sys/fs/cgroup/cpu.max": "200000 100000",
        },
        (2 * GIB, 2.0),
    ),
    "the tightest of all groups above": (
        {
            "proc/self/cgroup": "0::/a/b/c",
            "sys/fs/cgroup/a/memory.max": str(GIB),
            "sys/fs/cgroup/a/b/memory.max": str(4 * GIB),
            "sys/fs/cgroup/a/b/c/memory.max": "max",
            "sys/fs/cgroup/a/cpu.max": "max 100000",
            "sys/fs/cgroup/a/b/cpu.max": "50000 100000",
        },
        (GIB, 0.5),
    ),
    "no limits": (
        {"proc/self/cgroup": "0::/x", "sys/fs/cgroup/x/memory.max": "max", "sys/fs/cgroup/x/cpu.max": "max 100000"},
        (None, None),
    ),
    "version 1": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(3 * GIB),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
        },
        (3 * GIB, 3.0),
    ),
    "version 1 by another of its names": (
        {
            "proc/self/cgroup": "5:cpuacct,cpu:/g\n4:memory:/g",
            "sys/fs/cgroup/cpu/g/cpu.cfs_quota_us": "100000",
            "sys/fs/cgroup/cpu/g/cpu.cfs_period_us": "100000",
        },
        (None, 1.0),
    ),
    "version 1 without limits": (
        {
            "proc/self/cgroup": "5:cpu:/\n4:memory:/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NOBODY_SAID,
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
        (None, None),
    ),
    "nothing mounted": ({}, (None, None)),
    "nonsense": (
        {"proc/self/cgroup": "hm\n0::/", "sys/fs/cgroup/memory.max": "", "sys/fs/cgroup/cpu.max": "1 0"},
        (None, None),
    ),
}


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


@pytest.mark.parametrize("case", TREES)
def test_limits_are_read_from_the_groups(tmp_path, case):
    files, expected = TREES[case]
    root = lay_out(tmp_path, files)
    assert (cgroups.memory_bytes(root), cgroups.cores(root)) == expected


@pytest.mark.parametrize(
    ("quota", "expected"), [("100000", 1), ("20000", 1), ("6400000", len(os.sched_getaffinity(0)))]
)
def test_a_worker_has_whole_cores_within_its_quota_and_one_at_least(tmp_path, quota, expected):
    root = lay_out(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": f"{quota} 100000"})
    assert hardware.cores(root) == expected


def test_memory_is_the_machines_or_less(tmp_path):
    whole = psutil.virtual_memory().total
    assert hardware.memory_bytes(tmp_path) == whole
    root = lay_out(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": str(whole * 2)})
    assert hardware.memory_bytes(root) == whole
    lay_out(tmp_path, {"sys/fs/cgroup/memory.max": str(GIB)})
    assert hardware.memory_bytes(root) == GIB
