"""What a job asks of its workers: a short text beside its plan (`Job.demand`), so that a queue of ten thousand is looked through by
an index and never read whole. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ANYWHERE = "anywhere"
SIMULATOR = "cuda-simulator"
TRAINING_CPU, TRAINING_CUDA = "training-cpu", "training-cuda"
CLUSTERS: Final = ("dask", "ray")


@dataclass(frozen=True)
class Demand:
    """What a job asks of its home, and of as many more workers as it has nodes.

    place: `anywhere` (a probe job: any worker, and nothing of it), `cpu` (any worker), `dask` or `ray` (a worker of that engine),
    `cuda` (a worker that executed a GPU function), `cuda-simulator` (one that ran it on Numba's simulator), `training-cpu` (any),
    `training-cuda` (one that executed torch on CUDA).
    """

    place: str
    devices: int | tuple[int, ...] = 0
    """CUDA devices of each node: how many, or which indices."""
    nodes: int = 1
    engine: str = ""
    """The engine that all of it must be on; empty where any will do."""
    gib: int = 0
    """Memory that its home must have, GiB: what was estimated, down to a power of two, so that few demands differ by it alone."""

    @classmethod
    def of(cls, kind: str, plan: Mapping[str, Any]) -> "Demand":
        """Of a job, by its plan. `devices: auto`, or none named, is one device: STUMPY's own default, and the others stay free."""
        if kind == "probe":
            return cls(ANYWHERE)
        backend = str(plan.get("backend", "cpu"))
        if kind == "training":
            return cls._of_training(backend, plan["resolved"])
        gib = _gib((plan.get("estimate") or {}).get("peak_bytes", 0))
        if plan.get("device") == SIMULATOR:
            return cls(SIMULATOR, gib=gib)
        if backend != "cuda":
            return cls(backend, gib=gib)
        return cls(backend, _devices(plan.get("devices")) or 1, gib=gib)

    @classmethod
    def _of_training(cls, backend: str, resolved: Mapping[str, Any]) -> "Demand":
        on_cuda = resolved["accelerator"] == "cuda"
        devices = _devices(resolved.get("device_indices")) or resolved["devices"] if on_cuda else 0
        engine = backend if backend in CLUSTERS else ""
        return cls(TRAINING_CUDA if on_cuda else TRAINING_CPU, devices, resolved["num_nodes"], engine)

    @classmethod
    def parse(cls, text: str) -> "Demand":
        """The inverse of `str`."""
        place, *rest = text.split(" ")
        devices: int | tuple[int, ...] = 0
        nodes, engine, gib = 1, "", 0
        for word in rest:
            match word[0]:
                case "#":
                    devices = tuple(int(index) for index in word[1:].split(","))
                case "x":
                    nodes = int(word[1:])
                case "@":
                    engine = word[1:]
                case "~":
                    gib = int(word[1:])
                case _:
                    devices = int(word)
        return cls(place, devices, nodes, engine, gib)

    @property
    def spreads(self) -> bool:
        """Whether something of it may run on any worker of its home's engine."""
        return self.place in CLUSTERS or self.nodes > 1

    def __str__(self) -> str:
        listed = isinstance(self.devices, tuple)
        words = [
            self.place,
            f"#{','.join(map(str, self.devices))}" if isinstance(self.devices, tuple) else "",
            str(self.devices) if self.devices and not listed else "",
            f"x{self.nodes}" if self.nodes > 1 else "",
            f"@{self.engine}" if self.engine else "",
            f"~{self.gib}" if self.gib else "",
        ]
        return " ".join(filter(None, words))


def _gib(peak_bytes: int) -> int:
    """0 below one GiB, which every worker has."""
    return 1 << ((peak_bytes >> 30).bit_length() - 1) if peak_bytes >> 30 else 0


def _devices(asked: Any) -> int | tuple[int, ...]:
    match asked:
        case int():
            return asked
        case [*indices]:
            return tuple(sorted({int(index) for index in indices}))
    return 0
