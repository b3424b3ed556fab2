"""What the tests of training on GPUs have a job train. Uploaded as a source, so it stands alone; runs on CPU as well."""

from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset

WIDTH, ROWS, BATCH = 64, 1024, 32
HALVES = (torch.float16, torch.bfloat16)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH), nn.Linear(WIDTH, 1))


def rows() -> TensorDataset:
    """What a small network learns in a few steps."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    return TensorDataset(x, x[:, :1] - 0.5 * x[:, 1:2])


def loss_of(predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(predicted.float(), wanted.float())


class Witness:
    """What only the process itself can say: where it computed, in which precision, and what share of the weights it holds."""

    def __init__(self, net: nn.Module) -> None:
        self.whole = sum(parameter.numel() for parameter in net.parameters())
        self.half = self.on_cuda = 0.0
        net.get_submodule("0").register_forward_hook(self._look)

    def _look(self, layer: nn.Module, given: Any, made: torch.Tensor) -> None:
        self.half, self.on_cuda = float(made.dtype in HALVES), float(made.is_cuda)

    def says(self, model: nn.Module) -> dict[str, float]:
        local = sum((p.to_local() if hasattr(p, "to_local") else p).numel() for p in model.parameters())
        return {"half": self.half, "on_cuda": self.on_cuda, "local_share": local / self.whole}


def tell_device() -> None:
    if torch.cuda.is_available():
        print("device", torch.cuda.get_device_properties(torch.cuda.current_device()).uuid, flush=True)


class Net(pl.LightningModule):
    """Learns; logs what its witness says beside its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()
        self.witness = Witness(self.net)

    def on_fit_start(self) -> None:
        tell_device()

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        loss = loss_of(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.log_dict(self.witness.says(self))  # between backward and the next forward, when sharded weights are apart

    def predict_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        predicted: torch.Tensor = self.net(batch[0])
        return predicted[:, 0]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def sharded(net: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Two layers over the tensor-parallel part of the mesh, all of them over its data-parallel part."""
    parallelize_module(net, mesh["tensor_parallel"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(net, mesh=mesh["data_parallel"])
    return net


class Sharded(Net):
    """For ModelParallelStrategy."""

    def configure_model(self) -> None:
        sharded(self.net, self.device_mesh)  # type: ignore[arg-type]


class Rows(pl.LightningDataModule):
    def train_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        return DataLoader(rows(), batch_size=BATCH)

    def predict_dataloader(self) -> DataLoader[tuple[torch.Tensor, ...]]:
        return DataLoader(rows(), batch_size=BATCH)


def train(fabric: Fabric, epochs: int = 3) -> dict[str, float]:
    """The same under Fabric."""
    tell_device()
    net = network()
    witness = Witness(net)
    if "DeepSpeed" in type(fabric.strategy).__name__:
        model, optimizer = fabric.setup(net, torch.optim.Adam(net.parameters(), lr=3e-3))
    else:
        # Sharded weights are there after the set-up only, and the optimizer is to have those.
        model = fabric.setup_module(net)
        optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=3e-3))
    loader = fabric.setup_dataloaders(DataLoader(rows(), batch_size=BATCH))
    losses, says = [], {}
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            fabric.backward(loss)
            says = witness.says(model)
            optimizer.step()
            losses.append(loss.item())
            fabric.log("train_loss", losses[-1])
    return {"first_loss": losses[0], "train_loss": losses[-1], **says}


def wait_for_ever(fabric: Fabric, gigabytes: float = 1.0) -> None:
    """Holds memory of the device and makes steps until it is stopped."""
    held = torch.empty(int(gigabytes * 2**30), dtype=torch.uint8, device=fabric.device)
    weight = torch.ones(1, device=fabric.device, requires_grad=True)
    print("holding", held.numel(), "bytes", flush=True)
    while True:
        fabric.backward((weight * 0.5).sum())
