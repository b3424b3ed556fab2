"""What the workers proved, and what follows from it for a kind on a backend. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from workers.operations import Operation

BACKENDS: Final = ("cpu", "dask", "ray", "cuda")
EVIDENCE_ORDER: Final = ("absent", "importable", "configured", "simulated", "executed")
"""From nothing to all: only the last one makes a backend available."""
CLUSTERS: Final = ("dask", "ray")
"""Backends that spread a job over the workers of the engine of the same name."""

Proof = tuple[str, str]
"""Evidence and detail."""


@dataclass(frozen=True)
class WorkerFacts:
    """What planning looks at in a worker that is up."""

    id: str
    engine: str = "dask"
    threads: int = 1
    speeds: Mapping[str, float] = field(default_factory=dict)
    """What was measured: `matrix_profile_cells_per_second` and its like."""
    memory_bytes: int = 0
    """0 where it is not known."""
    gpus: int = 0
    """CUDA devices that can be leased; their indices count from 0."""
    evidence: Mapping[str, Proof] = field(default_factory=dict)
    """probe → (evidence, detail), without what is too old to count."""
    packages: frozenset[str] = frozenset()
    """Of those that its introduction tells versions of, the installed ones."""


def on_backend(backend: str, workers: Sequence[WorkerFacts]) -> list[WorkerFacts]:
    """The workers that could serve a backend by where they are: `dask` and `ray` are engines, the others are anywhere."""
    return [worker for worker in workers if backend not in CLUSTERS or worker.engine == backend]


def proved(backend: str, workers: Sequence[WorkerFacts], evidence: str = "executed") -> list[WorkerFacts]:
    """The workers that have this very evidence of a backend."""
    return [worker for worker in on_backend(backend, workers) if worker.evidence.get(backend, ("", ""))[0] == evidence]


def no_function(operation: Operation, backend: str) -> str | None:
    """Why STUMPY cannot run the kind there, whatever the hardware."""
    if backend in operation.functions:
        return None
    return f"STUMPY has no {'GPU' if backend == 'cuda' else backend} function for a {operation.title.lower()}"


def availability(operation: Operation, backend: str, workers: Sequence[WorkerFacts]) -> tuple[bool, str, str | None]:
    """(available, evidence, reason why not) of a kind on a backend. The reason is the best worker's own word."""
    if reason := no_function(operation, backend):
        return False, "absent", reason
    proofs = [worker.evidence[backend] for worker in on_backend(backend, workers) if backend in worker.evidence]
    if not proofs:
        return False, "absent", _unproved(backend, workers)
    evidence, detail = max(proofs, key=lambda proof: EVIDENCE_ORDER.index(proof[0]))
    return (True, evidence, None) if evidence == "executed" else (False, evidence, detail.rstrip("."))


def _unproved(backend: str, workers: Sequence[WorkerFacts]) -> str:
    if not workers:
        return "no worker has joined yet"
    if on_backend(backend, workers):
        return f"no worker has run the {backend} probe"
    # A worker of another engine may know more, such as that the package is not installed.
    elsewhere = [worker.evidence[backend] for worker in workers if backend in worker.evidence]
    known = next((f" ({detail.rstrip('.')})" for evidence, detail in elsewhere if evidence == "absent"), "")
    return f"no worker of the {backend.title()} engine has joined; name {backend} in TIDEMILL_ENGINE{known}"
