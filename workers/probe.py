"""What this machine can really do: each probe runs a small real case and compares its answer with a known one.

    python -m workers.probe [--check all|cpu|dask|ray|cuda|training] [--require-cuda] [--json]

A capability is what was executed here, never what imports (decision 10).
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from workers.contract import Probe, call_by_name
from workers.environment import compute_environment
from workers.host import CPU, Host
from workers.probes.clusters import check_dask, check_ray
from workers.probes.cpu import check_cpu
from workers.probes.cuda import check_cuda, gpu_speeds
from workers.probes.finding import Finding, in_child, probed

__all__ = ["Finding", "check_cuda", "first_probes", "in_child", "probed", "run_probes", "speeds"]

Extra = Mapping[str, Callable[[], Finding]]
TRAINING = "training"
OF_TRAINING = "workers.probes.training:training_probes"
"""Named, not imported: it alone knows of Lightning's strategies."""

NEEDED_CUDA = 3
"""Exit code when `--require-cuda` cannot be met."""


def run_probes(host: Host, check: str = "all", extra: Extra | None = None) -> list[Probe]:
    """Run the probes that `check` names ("all", or one) on `host`, whenever it is asked.

    extra: checks beyond `cpu`, `cuda` and `training` by name, such as a worker's of the cluster it is on.
    """
    found = [] if check == TRAINING else first_probes(host, extra, check)
    return found + (training_probes(host) if check in ("all", TRAINING) else [])


def first_probes(host: Host, extra: Extra | None = None, check: str = "all") -> list[Probe]:
    """What a worker runs before it joins: all that does not need torch, which takes long to load."""
    # What needs no warm nursery first, while that warms; a check of a cluster has little time to wait for one.
    checks: dict[str, Callable[[], Finding]] = {
        "cuda": lambda: check_cuda(host),
        "cpu": lambda: check_cpu(host.nursery_for(CPU)),
        **(extra or {}),
    }
    return [probed(name, each) for name, each in checks.items() if check in ("all", name)]


def speeds(host: Host, probes: Sequence[Probe]) -> dict[str, float]:
    """What this worker computes a second, by name, with whatever `probes` showed to work."""
    measured: dict[str, float] = in_child(host.nursery_for(CPU), "workers.probes.cpu:measure")
    if any(probe.name == "cuda" and probe.evidence == "executed" for probe in probes):
        measured |= gpu_speeds()
    return measured


def training_probes(host: Host) -> list[Probe]:
    """`training` as a whole, and one for each strategy, accelerator and precision, `training/…`."""
    try:
        found: list[Probe] = call_by_name(OF_TRAINING, host)
    except Exception as fault:
        failure = fault

        def unprobed() -> Finding:
            raise failure

        return [probed(TRAINING, unprobed)]
    return found


def bare_probes(check: str) -> list[Probe]:
    """The probes of a machine that is no worker: its own Dask, its own Ray, a nursery of one thread."""
    os.environ.update(compute_environment(threads=1))
    needs_kernels = check in ("all", "cpu")
    with closing(Host(compute_environment(threads=1), devices=(CPU,) if needs_kernels else ())) as host:
        return run_probes(host, check, {"dask": check_dask, "ray": check_ray})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.probe", description="Probe this machine without a server.")
    parser.add_argument("--check", choices=("all", "cpu", "dask", "ray", "cuda", "training"), default="all")
    parser.add_argument("--require-cuda", action="store_true", help="exit 3 unless a GPU function was executed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    probes = bare_probes(options.check)
    if options.require_cuda and options.check not in ("all", "cuda"):
        probes += bare_probes("cuda")
    if options.json:
        print(json.dumps([probe.model_dump(mode="json") for probe in probes], indent=2))
    else:
        width = max(len(probe.name) for probe in probes)
        for probe in probes:
            print(f"{probe.name:<{width}}  {probe.evidence:<10} {probe.seconds:6.2f} s  {probe.detail}")
    met = any(probe.name == "cuda" and probe.evidence == "executed" for probe in probes)
    return NEEDED_CUDA if options.require_cuda and not met else 0


if __name__ == "__main__":
    sys.exit(main())
