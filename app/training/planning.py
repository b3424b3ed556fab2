"""Where a training job will run, and as what. A pure function of the request and of what the workers proved."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.control.never import NEVER
from app.jobs.evidence import CLUSTERS, WorkerFacts
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import Backend, Execution
from app.jobs.schemas import Estimate, Fallback, Plan
from app.kit.problems import FieldError
from workers.contract import TrainingParams
from workers.training.rules import Checked, Machine, Resolved, check

ON_CUDA: Final = "training/accelerator/cuda"
"""The probe that ran torch on a CUDA device."""
OPTIONAL: Final = ("deepspeed", "transformer_engine", "bitsandbytes")
"""Packages that some strategies and precisions need."""
NO_WORKER: Final = "no worker has joined yet"
BOUNDLESS: Final = Machine(cuda_devices=1024)
"""A deployment that has all there could be."""


@dataclass(frozen=True)
class Findings:
    """What is wrong with a request, or what it becomes."""

    errors: list[FieldError]
    plan: Plan | None = None


def machine_of(workers: Sequence[WorkerFacts]) -> Machine:
    """What the deployment has to train on."""
    able = [worker.gpus for worker in workers if worker.evidence.get(ON_CUDA, ("", ""))[0] == "executed"]
    details = {worker.evidence[ON_CUDA][1].rstrip(".") for worker in workers if ON_CUDA in worker.evidence}
    reason = "; ".join(sorted(details)) or ("no worker has run the training probe" if workers else NO_WORKER)
    nodes = dict(Counter(worker.engine for worker in workers)) if workers else None
    packages = {name: any(name in worker.packages for worker in workers) for name in OPTIONAL} if workers else None
    return Machine(max(able, default=0), reason, nodes, packages)


def plan(
    params: TrainingParams, execution: Execution, workers: Sequence[WorkerFacts], allow: Sequence[str]
) -> Findings:
    """Check the table's rules and decide. What asks for more workers than there are, or larger ones, is planned as it will run once they
    have joined. Raises BackendUnavailable where the request forbids what would be done instead, waiting included."""
    fallback = _fallback(execution, workers)
    engine = execution.backend if execution.backend in CLUSTERS and fallback is None else None
    machine = machine_of([worker for worker in workers if engine in (None, worker.engine)])
    checked, errors = _checked(params, execution, machine, allow)
    if errors:
        if execution.fallback == "forbid":
            _refuse_what_is_not_there(params, execution, machine, allow, errors)
        larger = [_checked(params, execution, each, allow) for each in _larger(machine)]
        checked, errors = next((each for each in larger if not each[1]), larger[-1])
    if checked.resolved is None or errors:
        return Findings(errors)
    return Findings([], _plan(params, execution, checked, checked.resolved, workers, engine, fallback))


def _checked(
    params: TrainingParams, execution: Execution, machine: Machine, allow: Sequence[str]
) -> tuple[Checked, list[FieldError]]:
    """What the request comes to on that machine, and what is wrong with it there."""
    checked = check(params, machine, allow)
    faults = [FieldError(fault.pointer, fault.detail) for fault in checked.faults]
    return checked, faults + _misfits(execution, checked.resolved)


def _larger(machine: Machine) -> Iterator[Machine]:
    """The same with more workers, with larger ones, with both: what a job that may wait can wait for. A kind of device that nobody has
    is not waited for."""
    more, devices = replace(machine, nodes=None), BOUNDLESS.cuda_devices if machine.cuda_devices else 0
    yield from (more, replace(machine, cuda_devices=devices), replace(more, cuda_devices=devices))


def _refuse_what_is_not_there(
    params: TrainingParams, execution: Execution, machine: Machine, allow: Sequence[str], errors: Sequence[FieldError]
) -> None:
    """Where the request could run as it is on larger workers, or on more of them, nothing is wrong with it. Raises BackendUnavailable."""
    if execution.backend == "cuda" and machine.cuda_devices == 0:
        raise BackendUnavailable(
            f"'cuda' was asked for and cannot be had: {machine.cuda_reason}.", pointer="/execution/backend"
        )
    if not _checked(params, execution, BOUNDLESS, allow)[1]:
        raise BackendUnavailable(f"{NEVER.capitalize()}: {'; '.join(e.detail for e in errors)}.", errors=errors)


def _fallback(execution: Execution, workers: Sequence[WorkerFacts]) -> Fallback | None:
    """What stands in where a cluster was asked for that is not there."""
    wanted = execution.backend
    if wanted not in CLUSTERS or not workers or any(worker.engine == wanted for worker in workers):
        return None
    reason = f"no worker of the {wanted.title()} engine has joined; name {wanted} in TIDEMILL_ENGINE"
    if execution.fallback == "forbid":
        raise BackendUnavailable(f"{wanted!r} was asked for and cannot be had: {reason}.", pointer="/execution/backend")
    return Fallback(wanted=wanted, reason=reason)


def _misfits(execution: Execution, resolved: Resolved | None) -> list[FieldError]:
    """What `execution` says that a training job cannot follow."""
    found = []
    if execution.implementation != "auto":
        detail = (
            f"A training job is run by Lightning; leave `implementation` out instead of {execution.implementation!r}."
        )
        found.append(FieldError("/execution/implementation", detail))
    if execution.devices is not None:
        found.append(FieldError("/execution/devices", "A training job's devices are in its configuration: `devices`."))
    if resolved and execution.backend in ("cpu", "cuda") and execution.backend != resolved.accelerator:
        detail = (
            f"`backend` is {execution.backend!r}, and the configuration's accelerator comes to {resolved.accelerator!r}; "
            "let them agree, or leave `backend` out."
        )
        found.append(FieldError("/execution/backend", detail))
    return found


def _plan(
    params: TrainingParams,
    execution: Execution,
    checked: Checked,
    resolved: Resolved,
    workers: Sequence[WorkerFacts],
    engine: str | None,
    fallback: Fallback | None,
) -> Plan:
    on_cuda = resolved.accelerator == "cuda"
    backend, why = _backend(resolved, execution, workers, engine)
    said = [why, *checked.reasons]
    if fallback:
        said.insert(
            0, f"{fallback.wanted} was asked for and cannot be had: {fallback.reason}. The job runs on {backend}."
        )
    threads = min((worker.threads for worker in workers), default=0)
    crowded = not on_cuda and 0 < threads < resolved.devices
    crowd = [f"{resolved.devices} ranks share the {threads} computing thread(s) of a worker."] if crowded else []
    return Plan(
        backend=backend,
        implementation="lightning",
        function=_function(params),
        device=_device(resolved),
        devices=(resolved.device_indices or resolved.devices) if on_cuda else None,
        workers=resolved.num_nodes,
        fallback=fallback,
        acceleration_verified=on_cuda,
        estimate=Estimate(seconds=None, peak_bytes=0),
        reasons=said,
        warnings=[*checked.warnings, *crowd],
        resolved=resolved,
    )


def _backend(
    resolved: Resolved, execution: Execution, workers: Sequence[WorkerFacts], engine: str | None
) -> tuple[Backend, str]:
    """The engine where one is asked for or several workers must be of one; else what it computes on, wherever that is."""
    match engine:
        case "dask" | "ray":
            return engine, f"{engine} was asked for; the job runs on {_workers(resolved)} of that cluster."
    if resolved.num_nodes > 1:
        counted = Counter(worker.engine for worker in workers)
        largest: Backend = "ray" if counted["ray"] > counted["dask"] else "dask"
        return largest, f"{resolved.num_nodes} nodes are as many workers of one cluster, and {largest} has the most."
    if resolved.accelerator == "cuda":
        return "cuda", "The accelerator is cuda: it runs on a worker that proved torch on a CUDA device."
    return "cpu", "It runs on any one worker, whatever its engine."


def _workers(resolved: Resolved) -> str:
    return "one worker" if resolved.num_nodes == 1 else f"{resolved.num_nodes} workers"


def _function(params: TrainingParams) -> str:
    if params.mode == "trainer":
        return f"Trainer.{params.stage}"
    function = params.config.get("function")
    return str(function.get("call_path")) if isinstance(function, dict) else ""


def _device(resolved: Resolved) -> str:
    if resolved.accelerator == "cpu":
        return "cpu"
    return f"cuda:{','.join(map(str, resolved.device_indices))}" if resolved.device_indices else "cuda"
