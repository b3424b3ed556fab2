"""What ranks say when they fail, and what it means: tables, to be read and to be added to."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workers.failures import JobFailure, OutOfMemory
from workers.training.failures_named import DeviceMismatch, MissingPackage, PortTaken, RendezvousFailed


@dataclass(frozen=True)
class Sort:
    """What a rank's own words tell of a failure beyond `training-failed`."""

    kind: type[JobFailure]
    words: re.Pattern[str]
    hint: str
    at_start_only: bool = True


SORTS: Final = (
    Sort(
        OutOfMemory,
        re.compile(r"OutOfMemoryError|CUDA out of memory|can't allocate memory|Cannot allocate memory|ALLOC_FAILED"),
        "Use a smaller batch_size or model, or a worker with more memory.",
        at_start_only=False,
    ),
    Sort(
        PortTaken,
        re.compile(r"EADDRINUSE|[Aa]ddress already in use"),
        "Another process holds the port; try the job again, which takes another one.",
    ),
    Sort(
        DeviceMismatch,
        re.compile(r"You requested gpu|invalid device ordinal|can not run on your system|No supported gpu backend"),
        "Ask for fewer devices, or see `GET /capabilities` for what the workers have.",
    ),
    Sort(
        RendezvousFailed,
        re.compile(
            r"Dist(Network|Store|Backend)Error|connectFullMesh|[Uu]nable to (find|resolve) (address|hostname)|TCPStore"
        ),
        "All nodes must reach the first one by the address that its cluster knows; one that its own name resolves to 127.0.1.1 for "
        "needs a correct /etc/hosts.",
    ),
    Sort(
        MissingPackage,
        re.compile(r"ModuleNotFoundError|No module named '|ImportError"),
        "Have it installed on the workers, or configure something that does not need it.",
    ),
)
UNSORTED: Final = frozenset({"/problems/training-failed", "/problems/invalid-input"})
"""What a rank calls whatever it does not know better: while it runs, and while it builds what it was configured to."""
ECHO: Final = re.compile(
    r"[Cc]onnection (was )?(closed|reset) by (remote )?peer|Broken pipe|Connection closed|recvValue failed|"
    r"Socket closed|remote process exited|failed to recv, got 0 bytes"
)
"""What a rank says when another one has left it: no cause, as long as there is another."""
SIGNALS: Final[Mapping[int, str]] = {
    signal.SIGKILL: "most often because its container or machine ran out of memory; use a smaller batch_size or model, or more memory",
    signal.SIGSEGV: "a crash in compiled code, of a library or of the job's own",
    signal.SIGABRT: "compiled code gave up; its last words are in the rank's log",
    signal.SIGBUS: "most often because the shared memory in /dev/shm is used up: use fewer num_workers, or give the worker more of it",
    signal.SIGILL: "a library was built for another processor than this worker's",
    signal.SIGTERM: "something outside Tidemill ended it",
}
SHARDED: Final = " Under ddp every device holds the whole model, its gradients and its optimizer's state; on CUDA, `fsdp` shards them."
