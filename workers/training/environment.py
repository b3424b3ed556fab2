"""The environment of training processes: what they keep of the worker's, and what `torchrun` would have given a rank."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

from workers.hardware import visible_devices
from workers.training.spec import RankSpec

KEPT: Final = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTHONHOME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "XDG_CACHE_HOME",
        "TORCH_HOME",
        "HF_HOME",
        "TRITON_CACHE_DIR",
        "CUDA_HOME",
        "CUDA_PATH",
        "CUDA_CACHE_PATH",
        "CUDA_VISIBLE_DEVICES",
        "TIDEMILL_CACHE_DIR",
    ]
)
KEPT_PREFIXES: Final = ("LC_", "NCCL_", "NVIDIA_", "JE_ARROW_", "COVERAGE_")
"""NCCL's and NVIDIA's are about the machine and its network, which the operator knows and a job does not."""


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """What a training process keeps of its worker's environment.

    An allow-list, for the traps are many and new ones come: `SLURM_*`, `PL_*`, `LT_*`, `NODE_RANK`, `LOCAL_RANK` and `MASTER_PORT` each
    change what Lightning runs, and Dask's nanny sets `OMP_NUM_THREADS=1`. It also keeps the worker's secrets from the user's code.
    """
    return {name: value for name, value in environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}


def of_rank(spec: RankSpec) -> dict[str, str]:
    """The variables that `torchrun` sets, so that Lightning finds its TorchElasticEnvironment, and those of the rank's share."""
    world, threads = str(spec.world_size), str(spec.threads)
    variables = {
        "RANK": str(spec.rank),
        "LOCAL_RANK": str(spec.local_rank),
        "GROUP_RANK": str(spec.node_rank),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(spec.rank),
        "WORLD_SIZE": world,
        "ROLE_WORLD_SIZE": world,
        "GROUP_WORLD_SIZE": str(spec.resolved.num_nodes),
        "LOCAL_WORLD_SIZE": str(spec.local_world_size),
        "MASTER_ADDR": spec.master_address,
        "MASTER_PORT": str(spec.master_port),
        "TORCHELASTIC_RUN_ID": spec.attempt,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # The store is the supervisor's: no rank opens a port that somebody else could have taken meanwhile.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "CUDA_VISIBLE_DEVICES": ",".join(named(spec.devices)),
        # The order in which devices were told and leased.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if spec.temporary:
        variables["TMPDIR"] = spec.temporary
    if spec.interface:
        variables |= {"GLOO_SOCKET_IFNAME": spec.interface, "NCCL_SOCKET_IFNAME": spec.interface}
    return variables


def named(devices: Sequence[int]) -> list[str]:
    """CUDA's names of devices that are counted among those which the worker may see."""
    visible = visible_devices()
    return [str(device) if visible is None else visible[device] for device in devices]


def take_on(spec: RankSpec) -> None:
    """Make this process's environment that of the rank."""
    kept, told = clean(os.environ), of_rank(spec)
    os.environ.clear()
    os.environ.update(kept | told)
    tempfile.tempdir = None  # to be found anew: the parent may have looked
