"""The training probes: few steps in the ranks that jobs have, for each strategy, accelerator and precision that may run on this worker."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workers.contract import Probe, TrainingParams
from workers.host import TRAINING, Host
from workers.nursery_client import Nursery
from workers.probes.finding import Finding, in_child, probed
from workers.training.keeper import kept
from workers.training.node import NodeSupervisor
from workers.training.node_messages import NodeEnd, NodeWork, RankWork
from workers.training.rules import DEFAULT_ALLOW, Resolved
from workers.training.rules.evidence import accelerator_probe, precision_probe, strategy_probe
from workers.training.rules.precisions import PRECISIONS
from workers.training.rules.words import CPU, CUDA, FABRIC, NAMES, TRAINER
from workers.training.spec import RankSpec

TRIALS: Final = "workers.probes.training_trials"
BORING: Final = "lightning.pytorch.demos.boring_classes"
STEPS: Final = 3
SECONDS: Final = 60.0
"""Longer than this without a step, and a strategy has not been shown to work."""
ON_CUDA: Final = ("fsdp", "fsdp_cpu_offload", "deepspeed")
"""What needs CUDA, as far as a probe runs it."""
MESH: Final = "ModelParallelStrategy"


@dataclass(frozen=True)
class Trial:
    """One strategy in one mode."""

    mode: str
    strategy: str
    accelerator: str
    ranks: int

    @property
    def resolved(self) -> Resolved:
        return Resolved(
            accelerator=CUDA if self.accelerator == CUDA else CPU,
            devices=self.ranks,
            num_nodes=1,
            strategy=self.strategy,
            precision="32-true",
            world_size=self.ranks,
        )

    @property
    def config(self) -> dict[str, Any]:
        """What a job would send."""
        strategy: Any = self.strategy
        if strategy == MESH:
            package = "lightning.pytorch" if self.mode == TRAINER else "lightning.fabric"
            sizes: dict[str, Any] = {"data_parallel_size": self.ranks, "tensor_parallel_size": 1}
            more = {"parallelize_fn": f"{TRIALS}.shared_out"} if self.mode == FABRIC else {}
            strategy = {"class_path": f"{package}.strategies.{MESH}", "init_args": {**sizes, **more}}
        if self.mode == FABRIC:
            return {"fabric": {"strategy": strategy}, "function": {"call_path": f"{TRIALS}.steps"}}
        quiet = {"max_steps": STEPS, "limit_val_batches": 0, "logger": False, "enable_model_summary": False}
        model = f"{TRIALS}.Sharded" if self.strategy == MESH else f"{BORING}.BoringModel"
        return {
            "trainer": {"strategy": strategy, "enable_checkpointing": False, **quiet},
            "model": {"class_path": model},
            "data": {"class_path": f"{BORING}.BoringDataModule"},
        }


def training_probes(host: Host) -> list[Probe]:
    """`training` as a whole, then one for each thing that was tried."""
    nursery = host.nursery_for(TRAINING)
    devices: list[int] = []

    def cuda() -> Finding:
        devices.extend(range(_told(nursery, "cuda")["devices"]))
        return "executed", f"torch computed on {len(devices)} CUDA device(s)"

    probes = [_tried(accelerator_probe(CUDA), cuda)]
    accelerators = (CPU, CUDA) if devices else (CPU,)
    probes += [_precision(nursery, name, each) for each in accelerators for name in PRECISIONS if _runs(name, each)]
    probes.append(_alike(accelerator_probe(CPU), probes, precision_probe("32-true", CPU)))
    for mode in (TRAINER, FABRIC):
        trials = [Trial(mode, "single_device", CPU, 1), Trial(mode, "ddp", CPU, 2), Trial(mode, MESH, CPU, 2)]
        trials += [Trial(mode, name, CUDA, min(2, len(devices))) for name in ON_CUDA if devices]
        probes += [_strategy(nursery, trial) for trial in trials]
    return [_overall(probes), *probes]


def _overall(probes: list[Probe]) -> Probe:
    executed = {probe.name for probe in probes if probe.evidence == "executed"}
    missing = [NAMES[mode] for mode in (TRAINER, FABRIC) if strategy_probe(mode, "ddp") not in executed]

    def judged() -> Finding:
        if missing:
            details = {probe.detail for probe in probes if probe.name.endswith("/ddp") and probe.evidence != "executed"}
            return "absent", f"two ranks under {' and '.join(missing)} did not train: {'; '.join(sorted(details))}"
        return "executed", "two ranks trained a few steps under Trainer and under Fabric"

    return probed("training", judged)


def _alike(name: str, probes: list[Probe], other: str) -> Probe:
    """What another probe has shown as well."""
    shown = next(probe for probe in probes if probe.name == other)
    return shown.model_copy(update={"name": name})


def _runs(name: str, accelerator: str) -> bool:
    """Whether the table has this precision run here as itself; one whose package is missing says so when it is tried."""
    here = PRECISIONS[name].on[accelerator]
    return here.refusal is None and here.runs_as is None


def _precision(nursery: Nursery, name: str, accelerator: str) -> Probe:
    def check() -> Finding:
        steps = _told(nursery, "precision", accelerator, name)["steps"]
        return "executed", f"one process trained {steps} steps in {name} on {accelerator}"

    return _tried(precision_probe(name, accelerator), check)


def _strategy(nursery: Nursery, trial: Trial) -> Probe:
    def check() -> Finding:
        end = _run(nursery, trial)
        for rank in end.ranks:
            if not rank.clean:
                raise NotTrained(f"rank {rank.rank} {rank.words}")
        return "executed", f"{trial.ranks} rank(s) trained a few steps under {NAMES[trial.mode]} on {trial.accelerator}"

    return _tried(strategy_probe(trial.mode, trial.strategy), check)


class NotTrained(Exception):
    """A trial did not come to its end."""


def _tried(name: str, check: Callable[[], Finding]) -> Probe:
    def found() -> Finding:
        try:
            return check()
        except NotTrained as reason:
            return "absent", str(reason)

    return probed(name, found)


def _told(nursery: Nursery, trial: str, *arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = in_child(nursery, f"{TRIALS}:{trial}", *arguments)
    if "reason" in answer:
        raise NotTrained(answer["reason"])
    return answer


def _run(nursery: Nursery, trial: Trial) -> NodeEnd:
    """As a job's ranks: forked, supervised, with a store of their own."""
    lost: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="probe-", ignore_cleanup_errors=True) as folder,
        kept(nursery, "127.0.0.1", str(Path(folder, "keeper.log")), lost.append) as port,
    ):
        ranks = [_rank(trial, rank, folder, port) for rank in range(trial.ranks)]
        work = NodeWork(attempt="probe", claim="", node=0, ranks=ranks, start_seconds=SECONDS, stall_seconds=SECONDS)
        end = NodeSupervisor(nursery, work, lambda message: None).run()
    problem = end.problem and end.problem.get("detail")
    if reason := (lost and lost[0]) or problem or end.lost:
        raise NotTrained(str(reason))
    return end


def _rank(trial: Trial, rank: int, folder: str, port: int) -> RankWork:
    spec = RankSpec(
        attempt="probe",
        job="probe",
        params=TrainingParams.model_validate({"mode": trial.mode, "config": trial.config}),
        resolved=trial.resolved,
        folder=folder,
        rank=rank,
        local_rank=rank,
        node_rank=0,
        local_world_size=trial.ranks,
        master_address="127.0.0.1",
        master_port=port,
        threads=1,
        devices=list(range(trial.ranks)) if trial.accelerator == CUDA else [],
        seed=1,
        allow=[*DEFAULT_ALLOW, TRIALS],
        stop_file=str(Path(folder, ".stop")),
    )
    return RankWork(rank=rank, log=str(Path(folder, f"rank-{rank}.log")), spec=spec.model_dump(mode="json"))
