"""Where a job will run, and why. A pure function of the request, of what the workers proved, and of the job's size."""

from collections.abc import Sequence
from typing import Any

from app.jobs.choices import AUTO, SIMULATOR_POINTS, Situation, obstacle
from app.jobs.estimates import estimate_error, peak_bytes
from app.jobs.evidence import BACKENDS, CLUSTERS, EVIDENCE_ORDER, WorkerFacts, availability, proved
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import Backend, Execution
from app.jobs.schemas import Estimate, Fallback, Plan
from workers.operations import Lengths, Operation

__all__ = ["BACKENDS", "EVIDENCE_ORDER", "WorkerFacts", "availability", "estimate_error", "plan"]

NO_TILES = "this release has no tile implementation yet"
UNVERIFIED = "Acceleration was not verified."


def plan(
    operation: Operation, params: Any, execution: Execution, lengths: Lengths, workers: Sequence[WorkerFacts]
) -> Plan:
    """Choose backend, implementation and devices, or raise BackendUnavailable where the request forbids the choice.

    lengths: samples of each series, in the order of `operation.series`.
    """
    s = Situation(operation, params, lengths, execution, workers)
    backend, fallback, reasons = _backend(s)
    simulated = backend == "cuda" and s.simulated
    reasons += _implementation(execution)
    if execution.implementation == "tiles":
        fallback = fallback or Fallback(wanted="tiles", reason=NO_TILES)
    function = operation.functions[backend].pick(params.normalize)
    distances = "z-normalised" if params.normalize else "p-norm"
    reasons.append(f"`{function}` is STUMPY's function for {distances} distances on {backend}.")
    devices, device, said = _devices(s, backend)
    reasons += said
    if backend == "ray":
        reasons.append(
            "STUMPY's own Ray path is experimental and is not used: the pieces run as Ray tasks through our door."
        )
    return Plan(
        backend=backend,
        implementation="stumpy",
        function=function,
        device=device,
        devices=devices,
        workers=len(proved(backend, workers)) if backend in CLUSTERS else 1,
        fallback=fallback,
        acceleration_verified=backend == "cuda" and not simulated,
        estimate=Estimate(
            seconds=None if simulated else s.seconds(backend),
            peak_bytes=peak_bytes(operation, params, lengths, workers),
        ),
        reasons=reasons,
        warnings=[f"This runs on Numba's CUDA simulator, on a CPU: it shows nothing about a GPU. {UNVERIFIED}"]
        if simulated
        else [],
    )


def _backend(s: Situation) -> tuple[Backend, Fallback | None, list[str]]:
    """The backend, what it stands in for, and the reasons."""
    wanted = s.execution.backend
    if wanted == "auto":
        choice = next(each for each in AUTO if not obstacle(s, each.backend) and each.pays(s))
        return choice.backend, None, [f"`auto` chose {choice.backend}: {choice.because(s)}."]
    reason = obstacle(s, wanted)
    if reason is None:
        return wanted, None, [_granted(s, wanted)]
    if s.execution.fallback == "forbid":
        raise BackendUnavailable(f"{wanted!r} was asked for and cannot be had: {reason}.", pointer="/execution/backend")
    said = f"{wanted} was asked for and cannot be had: {reason}. The cpu stands in. {UNVERIFIED}"
    return "cpu", Fallback(wanted=wanted, reason=reason), [said]


def _granted(s: Situation, backend: str) -> str:
    if backend == "cpu":
        return "cpu was asked for."
    if backend == "cuda" and s.simulated:
        return f"cuda was asked for; its evidence is simulated, and up to {SIMULATOR_POINTS} points run on Numba's simulator."
    number = len(proved(backend, s.workers))
    return f"{backend} was asked for, and {'a worker has' if number == 1 else f'{number} workers have'} proved it."


def _implementation(execution: Execution) -> list[str]:
    if execution.implementation != "tiles":
        return ["STUMPY computes it, being the only implementation of this release."]
    if execution.fallback == "forbid":
        raise BackendUnavailable(f"'tiles' was asked for, but {NO_TILES}.", pointer="/execution/implementation")
    return [f"STUMPY computes it, since {NO_TILES}."]


def _devices(s: Situation, backend: str) -> tuple[int | list[int] | None, str, list[str]]:
    """What placement has to lease, the device's name, and why."""
    if backend != "cuda":
        return None, "cpu", []
    if s.simulated:
        return None, "cuda-simulator", []
    asked = s.execution.devices
    if isinstance(asked, list):
        return asked, f"cuda:{','.join(map(str, asked))}", ["`devices` names the devices."]
    count = asked if isinstance(asked, int) else 1
    said = "`devices` says how many" if isinstance(asked, int) else "One device takes it, as `devices` asks for no more"
    # Which ones is for placement to say, unless there is no choice.
    fixed = all(worker.gpus in (0, count) for worker in proved("cuda", s.workers))
    if fixed:
        return count, f"cuda:{','.join(map(str, range(count)))}", [f"{said}."]
    return count, "cuda", [f"{said}; placement picks from those that are free."]
