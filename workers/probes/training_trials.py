"""What the training probes run in children of the training nursery: a few steps, by every way that jobs train."""

import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
from lightning.fabric import Fabric
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel

STEPS: Final = 3
QUIET: Final[dict[str, Any]] = {
    "max_steps": STEPS,
    "limit_val_batches": 0,
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Sharded(BoringModel):  # type: ignore[misc]
    """One layer, its weights shared out over all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer: Any = None

    def configure_model(self) -> None:
        if self.layer is None:
            self.layer = shared_out(torch.nn.Linear(32, 2), self.device_mesh)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.layer.parameters(), lr=0.1)


def shared_out(module: torch.nn.Module, mesh: Any) -> torch.nn.Module:
    """FSDP2 over the mesh's data-parallel side: what ModelParallelStrategy leaves to its user."""
    from torch.distributed.fsdp import fully_shard

    fully_shard(module, mesh=mesh["data_parallel"])
    return module


def steps(fabric: Fabric) -> dict[str, float]:
    """A loop under Fabric; the ranks' weights are the same after it, and are not what they were."""
    model = torch.nn.Linear(32, 2)
    before = model.weight.detach().clone().to(fabric.device)
    prepared = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.SGD(prepared.parameters(), lr=0.1))
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = prepared(torch.randn(4, 32, device=fabric.device)).pow(2).mean()
        fabric.backward(loss)
        optimizer.step()
    weight: Any = next(prepared.parameters()).detach()
    weight = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    moved = weight.shape != before.shape or bool((weight != before).any())
    return {"steps": STEPS, "moved": float(moved)}


def cuda(reporter: object) -> dict[str, Any]:
    """`devices` that torch has here, each after a small sum on it, or the `reason` why not. CUDA is touched after the fork."""
    if not torch.cuda.is_available():
        built = torch.version.cuda is not None
        return {
            "reason": "torch finds no CUDA device" if built else "the torch that is installed is built without CUDA"
        }
    return _attempted(_sums)


def _sums() -> dict[str, Any]:
    count = torch.cuda.device_count()
    for index in range(count):
        total = float(torch.ones(1000, device=f"cuda:{index}").sum())
        if total != 1000:
            raise ArithmeticError(f"CUDA device {index} computed the sum of 1000 ones as {total}")
    return {"devices": count}


def precision(accelerator: str, name: str, reporter: object) -> dict[str, Any]:
    """`steps` of one process in one precision, or the `reason` why not."""
    return _attempted(lambda: _precision(accelerator, name))


def _precision(accelerator: str, name: str) -> dict[str, Any]:
    from lightning.pytorch import Trainer

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model = BoringModel()
    trainer = Trainer(accelerator=accelerator, devices=1, precision=name, **QUIET)
    trainer.fit(model, BoringDataModule())
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise ArithmeticError(f"after {trainer.global_step} steps a weight is not finite")
    return {"steps": trainer.global_step}


def _attempted(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return run()
    except Exception as fault:
        return {"reason": f"{type(fault).__name__}: {fault}"}
