"""Where a job will run, and why. A pure function of the request, of what the workers proved, and of the job's size."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.jobs.problems import BackendUnavailable
from app.jobs.schemas import Estimate, Execution, Fallback, Plan
from workers.operations import Operation, Size


@dataclass(frozen=True)
class WorkerFacts:
    """What planning looks at in a worker."""

    id: str
    threads: int
    cells_per_second: float
    evidence: dict[str, tuple[str, str]]
    """probe → (evidence, detail)."""


BACKENDS = ("cpu", "dask", "ray", "cuda")


def availability(operation: Operation, backend: str, workers: Sequence[WorkerFacts]) -> tuple[bool, str, str | None]:
    """(available, evidence, reason why not): what this release can run, on what a worker has executed."""
    if backend not in operation.functions:
        return False, "absent", f"STUMPY has no function for {operation.title.lower()} on {backend}"
    proofs = [worker.evidence[backend] for worker in workers if backend in worker.evidence]
    evidence, detail = max(
        proofs, key=lambda proof: EVIDENCE_ORDER.index(proof[0]), default=("absent", _unproved(backend, workers))
    )
    if evidence == "absent":
        return False, evidence, detail
    if backend in operation.absent:
        return False, evidence, operation.absent[backend]
    if evidence != "executed":
        return False, evidence, detail
    return True, evidence, None


EVIDENCE_ORDER = ("absent", "importable", "configured", "simulated", "executed")


def _unproved(backend: str, workers: Sequence[WorkerFacts]) -> str:
    if not workers:
        return "no worker has joined yet"
    return f"no worker has run the {backend} probe"


def plan(
    operation: Operation, normalize: bool, execution: Execution, size: Size, workers: Sequence[WorkerFacts]
) -> Plan:
    """Choose backend and implementation, or raise BackendUnavailable where the request forbids the choice."""
    backend, fallback, reasons = _backend(operation, execution, workers)
    if execution.implementation == "tiles":
        reason = "this release has no tile implementation yet"
        if execution.fallback == "forbid":
            raise BackendUnavailable(f"'tiles' was asked for, but {reason}.", pointer="/execution/implementation")
        fallback = fallback or Fallback(wanted="tiles", reason=reason)
        reasons.append(f"STUMPY computes it, since {reason}.")
    else:
        reasons.append("STUMPY computes it, being the only implementation of this release.")
    function = operation.functions[backend].pick(normalize)
    reasons.append(
        f"`{function}` is STUMPY's function for {'z-normalised' if normalize else 'p-norm'} distances on {backend}."
    )
    speeds = [worker.cells_per_second for worker in workers if worker.cells_per_second > 0]
    threads = max((worker.threads for worker in workers), default=1)
    return Plan(
        backend=backend,
        implementation="stumpy",
        function=function,
        device="cpu",
        workers=1,
        fallback=fallback,
        acceleration_verified=False,
        estimate=Estimate(
            seconds=operation.cells(size) / min(speeds) if speeds else None,
            peak_bytes=operation.peak_bytes(size, threads),
        ),
        reasons=reasons,
        warnings=[],
    )


def _backend(
    operation: Operation, execution: Execution, workers: Sequence[WorkerFacts]
) -> tuple[str, Fallback | None, list[str]]:
    """The backend, what it stands in for, and the reasons. `cpu` needs no proof to wait for: every worker has a CPU."""
    wanted = execution.backend
    if wanted == "auto":
        return "cpu", None, ["`auto` chose cpu: the one backend on which this release runs the kind."]
    if wanted == "cpu":
        return "cpu", None, ["cpu was asked for."]
    available, _, reason = availability(operation, wanted, workers)
    if available:
        return wanted, None, [f"{wanted} was asked for, and a worker has proved it."]
    if execution.fallback == "forbid":
        raise BackendUnavailable(f"{wanted!r} was asked for, but {reason}.", pointer="/execution/backend")
    return (
        "cpu",
        Fallback(wanted=wanted, reason=reason or ""),
        [f"{wanted} was asked for, but {reason}; cpu stands in."],
    )
