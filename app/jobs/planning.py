"""Where a job will run, and why. A pure function of the request, of what the workers proved, and of the job's size."""

from collections.abc import Sequence
from typing import Any, Literal

from app.jobs.choices import AUTO, SIMULATOR_POINTS, Situation, obstacle, tiles_obstacle
from app.jobs.estimates import estimate_error, peak_bytes
from app.jobs.evidence import BACKENDS, CLUSTERS, EVIDENCE_ORDER, WorkerFacts, availability, proved
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import Backend, Execution
from app.jobs.schemas import Estimate, Fallback, Plan
from workers.operations import Operation
from workers.sizes import Lengths

__all__ = ["BACKENDS", "EVIDENCE_ORDER", "WorkerFacts", "availability", "estimate_error", "plan"]

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
    implementation, function, instead, said = _implementation(s, backend)
    reasons += said
    devices, device, said = _devices(s, backend)
    reasons += said
    if backend == "ray" and implementation == "stumpy":
        reasons.append(
            "STUMPY's own Ray path is experimental and is not used: the pieces run as Ray tasks through our door."
        )
    return Plan(
        backend=backend,
        implementation=implementation,
        function=function,
        device=device,
        devices=devices,
        workers=len(proved(backend, workers)) if backend in CLUSTERS else 1,
        fallback=fallback or instead,
        acceleration_verified=backend == "cuda" and not simulated,
        estimate=Estimate(
            seconds=None if simulated else s.seconds(backend),
            peak_bytes=peak_bytes(s.computation(backend), params, lengths, workers),
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


def _implementation(s: Situation, backend: str) -> tuple[Literal["tiles", "stumpy"], str, Fallback | None, list[str]]:
    """Who computes it, the name of the function, what it stands in for, and the reasons."""
    distances = f"is the function for {'z-normalised' if s.params.normalize else 'p-norm'} distances on {backend}"
    reason = tiles_obstacle(s.operation, s.params, s.execution)
    if reason is None and backend == "cuda":
        reason = "tiles run on CPUs alone"
    if reason is None and s.tiles:
        where = "spread over the cluster" if backend in CLUSTERS else "in the worker's threads"
        chosen = "was asked for" if s.execution.implementation == "tiles" else "applies, exact and the fastest on a CPU"
        name = s.tiles.name(s.params)
        return "tiles", name, None, [f"Our own kernel {chosen}: tile by tile, {where}.", f"`{name}` {distances}."]
    fallback = None
    if s.execution.implementation == "tiles":
        if s.execution.fallback == "forbid":
            raise BackendUnavailable(f"'tiles' was asked for, but {reason}.", pointer="/execution/implementation")
        fallback = Fallback(wanted="tiles", reason=reason or "")
    name = s.operation.functions[backend].pick(s.params.normalize)
    return "stumpy", name, fallback, [f"STUMPY computes it, since {reason}.", f"`{name}` {distances}."]


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
