"""Requests and workers for the tests of planning, as short as they can be said."""

from typing import Any

from app.jobs.planning import BACKENDS, WorkerFacts, plan
from app.jobs.requests import Execution
from app.jobs.schemas import Plan
from workers.operations import OPERATIONS

EVERYTHING = dict.fromkeys(BACKENDS, ("executed", "a small case ran"))
SPEEDS = {
    f"{each.kernels.pick(normalize)}_cells_per_second": 1e6
    for operation in OPERATIONS.values()
    for each in (operation, operation.tiles)
    for normalize in (True, False)
    if each
}


def worker(name="w", engine="dask", threads=2, speed=1e6, gpus=0, memory=0, **evidence: str) -> WorkerFacts:
    """A worker with what its probes proved, each in its own words."""
    proofs = {probe: (proof, f"{probe} is {proof}") for probe, proof in evidence.items()}
    return WorkerFacts(name, engine, threads, dict.fromkeys(SPEEDS, speed), memory, gpus, proofs)


def anything(name="w", engine="dask", gpus=2) -> WorkerFacts:
    """A worker that has proved all there is."""
    return WorkerFacts(name, engine, 2, SPEEDS, 0, gpus, EVERYTHING)


def series_of(kind: str, count: int = 2) -> dict[str, Any]:
    """The parameters that name series, with nothing in them: planning gets the lengths."""
    nothing: dict[str, Any] = {"values": []}
    several = kind in ("multidimensional_profile", "consensus_motif")
    names = [name for name in OPERATIONS[kind].series if name != "against"]
    return {name: [nothing] * count if several else nothing for name in names}


def lengths_of(kind: str, length: int) -> list[int]:
    return [length] if kind in ("matrix_profile", "pan_profile") else [length, length]


def params_of(kind: str, **params: Any) -> Any:
    window = {} if kind == "pan_profile" else {"window": 50}
    return OPERATIONS[kind].params.model_validate({**series_of(kind), **window, **params})


def planned(kind="matrix_profile", length=1050, workers=(), params=None, **execution: Any) -> Plan:
    said = params_of(kind, **(params or {}))
    return plan(OPERATIONS[kind], said, Execution.model_validate(execution), lengths_of(kind, length), workers)
