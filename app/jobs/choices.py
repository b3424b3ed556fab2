"""Where a job can run and where it had best run: two tables, read from above. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.control.never import short_of_devices
from app.jobs.estimates import seconds_on
from app.jobs.evidence import WorkerFacts, availability, no_function, proved
from app.jobs.requests import Backend, Execution
from workers.contract import PanProfileParams
from workers.operations import Computation, Operation, Tiles
from workers.sizes import Lengths

SPREAD_SECONDS: Final = 5.0
"""Work that STUMPY on one worker does in less is not worth cutting up."""
TILES_SPREAD_SECONDS: Final = 0.5
"""The same of work that comes in tiles already: handing them round costs next to nothing."""
GPU_SECONDS: Final = 30.0
"""Work that one worker does in less is done before a GPU has begun to pay: one launch a window, and a fresh process."""
SIMULATOR_POINTS: Final = 64
"""The longest series that Numba's simulator takes: it runs one thread of the CPU for each thread of the GPU."""


@dataclass(frozen=True)
class Situation:
    """All that planning decides by."""

    operation: Operation
    params: Any
    lengths: Lengths
    execution: Execution
    workers: Sequence[WorkerFacts]

    @property
    def tiles(self) -> Tiles | None:
        """Our own kernel, where it computes the job on a CPU."""
        return None if tiles_obstacle(self.operation, self.params, self.execution) else self.operation.tiles

    def computation(self, backend: str) -> Computation:
        """Who computes the job there."""
        return self.operation if backend == "cuda" else self.tiles or self.operation

    @property
    def spread_seconds(self) -> float:
        return TILES_SPREAD_SECONDS if self.tiles else SPREAD_SECONDS

    def seconds(self, backend: str) -> float | None:
        return seconds_on(backend, self.computation(backend), self.params, self.lengths, self.workers)

    def takes_longer(self, seconds: float) -> bool:
        """Whether one worker needs longer; where none was measured, nobody knows, and nothing is decided by it."""
        return (self.seconds("cpu") or 0) > seconds

    @property
    def simulated(self) -> bool:
        """Whether CUDA is asked for by name where only its simulator is."""
        asked = self.execution.backend == "cuda"
        return asked and not proved("cuda", self.workers) and bool(proved("cuda", self.workers, "simulated"))


def tiles_obstacle(operation: Operation, params: Any, execution: Execution) -> str | None:
    """Why our own kernel does not compute a job on a CPU, as half a sentence; None where it does."""
    if execution.implementation == "stumpy":
        return "`stumpy` was asked for"
    if operation.tiles is None:
        return f"there is no kernel of tiles for a {operation.title.lower()}"
    return operation.tiles.obstacle(params)


# ---- what keeps a kind from a backend ------------------------------------------------------------------------------


def _no_function(s: Situation, backend: str) -> str | None:
    return no_function(s.operation, backend)


def _approximation(s: Situation, backend: str) -> str | None:
    if backend == "cpu" or not isinstance(s.params, PanProfileParams) or s.params.percentage >= 1:
        return None
    share = s.params.percentage
    exact = s.operation.functions[backend].pick(s.params.normalize)
    return f"STUMPY's `{exact}` is exact only, and an approximation (percentage {share:g}) runs on cpu alone"


def _no_proof(s: Situation, backend: str) -> str | None:
    if backend == "cpu" or (backend == "cuda" and s.simulated):  # every worker has a CPU; there is no need to wait
        return None
    return availability(s.operation, backend, s.workers)[2]


def _too_long_to_simulate(s: Situation, backend: str) -> str | None:
    longest = max(s.lengths)
    if backend != "cuda" or not s.simulated or longest <= SIMULATOR_POINTS:
        return None
    return (
        f"its only evidence is simulated, and the simulator takes series of up to {SIMULATOR_POINTS} points, "
        f"while the longest here has {longest}"
    )


def _no_device(s: Situation, backend: str) -> str | None:
    if backend != "cuda":
        return None
    asked = s.execution.devices
    gpus = [1] if s.simulated else [worker.gpus for worker in proved("cuda", s.workers)]
    wanted = asked if isinstance(asked, (int, list)) else 1
    return short_of_devices(wanted, max(gpus, default=0), sum(gpus), s.simulated)


Obstacle = Callable[[Situation, str], str | None]
OBSTACLES: Final[Sequence[Obstacle]] = (_no_function, _approximation, _no_proof, _too_long_to_simulate, _no_device)


def obstacle(s: Situation, backend: str) -> str | None:
    """The first reason why the job cannot run on a backend; None where it can."""
    return next((reason for each in OBSTACLES if (reason := each(s, backend))), None)


# ---- what `auto` likes best ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preference:
    """A backend that `auto` takes where nothing keeps the job from it and it pays."""

    backend: Backend
    pays: Callable[[Situation], bool]
    because: Callable[[Situation], str]


def _gpu_pays(s: Situation) -> bool:
    return s.takes_longer(GPU_SECONDS) and not (s.tiles and s.execution.implementation == "tiles")


def _spreading_pays(engine: str) -> Callable[[Situation], bool]:
    return lambda s: len(proved(engine, s.workers)) > 1 and s.takes_longer(s.spread_seconds)


def _large(what: str) -> Callable[[Situation], str]:
    return lambda s: f"one worker's CPU would take about {s.seconds('cpu'):.0f} s, {what}"


def _why_one_worker(s: Situation) -> str:
    seconds = s.seconds("cpu")
    if seconds is None:
        return "no worker's speed has been measured, so that nothing shows the work to be worth spreading"
    if seconds <= s.spread_seconds:
        return f"one worker takes about {seconds:.2g} s, and up to {s.spread_seconds:g} s spreading does not pay"
    inexact = _approximation(s, "dask")
    return inexact or "no cluster has a second worker that proved it, so there is nothing to spread over"


AUTO: Final[Sequence[Preference]] = (
    Preference("cuda", _gpu_pays, _large("and a worker has run a GPU function")),
    Preference("dask", _spreading_pays("dask"), _large("and several Dask workers share it")),
    Preference("ray", _spreading_pays("ray"), _large("and several Ray workers share it")),
    Preference("cpu", lambda s: True, _why_one_worker),
)
