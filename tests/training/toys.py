"""What a user might upload with `POST /sources`: small models that behave, and some that do not. (The tests send this file as it is.)"""

import os
import subprocess
import time

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, TensorDataset


class Line(LightningDataModule):
    """y = 2x + 1 with a little noise, the same for everybody."""

    def __init__(self, rows: int = 64, batch_size: int = 8, workers: int = 0):
        super().__init__()
        self.rows, self.batch_size, self.workers = rows, batch_size, workers

    def setup(self, stage: str) -> None:
        generator = torch.Generator().manual_seed(0)
        x = torch.rand(self.rows, 1, generator=generator)
        noise = torch.randn(self.rows, 1, generator=generator)
        self.data = TensorDataset(x, 2 * x + 1 + noise / 100)

    def _loader(self) -> DataLoader:
        return DataLoader(self.data, batch_size=self.batch_size, num_workers=self.workers)

    def train_dataloader(self) -> DataLoader:
        return self._loader()

    def val_dataloader(self) -> DataLoader:
        return self._loader()

    def predict_dataloader(self) -> DataLoader:
        return self._loader()


class Steady(LightningModule):
    """A line fitted to `Line`, with a pause in each step."""

    def __init__(self, seconds: float = 0.0, lr: float = 0.1):
        super().__init__()
        self.save_hyperparameters()
        self.seconds, self.lr = seconds, lr
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        time.sleep(self.seconds)
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("train_loss", loss)
        self.before_step_ends(loss)
        return loss

    def before_step_ends(self, loss) -> None: ...

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(x), y), sync_dist=True)

    def predict_step(self, batch, index):
        return {"prediction": self.layer(batch[0]).squeeze(1)}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class Raises(Steady):
    """Raises on one rank alone."""

    def __init__(self, rank: int = 1, step: int = 3):
        super().__init__()
        self.bad_rank, self.bad_step = rank, step

    def before_step_ends(self, loss) -> None:
        if self.global_rank == self.bad_rank and self.global_step == self.bad_step:
            raise RuntimeError("the toy broke on purpose")


class Hangs(Raises):
    """Stops on one rank for ever."""

    def before_step_ends(self, loss) -> None:
        if self.global_rank == self.bad_rank and self.global_step == self.bad_step:
            time.sleep(3600)


class Hidden(Steady):
    """Starts a helper in a session of its own, and goes on."""

    def on_train_start(self) -> None:
        subprocess.Popen(["sleep", "617"], start_new_session=True)


class Explodes(Steady):
    """Its loss becomes NaN at one step."""

    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        return loss * float("nan") if self.global_step == 5 else loss


def train(fabric, steps: int = 20, seconds: float = 0.0, raises_on: int = -1) -> dict[str, float]:
    """A line fitted under Fabric."""
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    x = torch.linspace(0, 1, 16).unsqueeze(1)
    for step in range(steps):
        time.sleep(seconds)
        loss = torch.nn.functional.mse_loss(model(x), 2 * x + 1)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        if fabric.global_rank == raises_on and step == 3:
            raise RuntimeError("the toy broke on purpose")
    return {"loss": loss.item(), "world_size": float(fabric.world_size), "pid": float(os.getpid())}


def look(fabric, series: str, whole: str, table: str, inline: str) -> dict[str, float]:
    """How long everything is that was referred to, if every rank finds the same."""
    import numpy as np
    import pyarrow.parquet

    found = [len(np.load(each)) for each in (series, whole, inline)] + [pyarrow.parquet.read_table(table).num_rows]
    everywhere = fabric.all_gather(torch.tensor(found))
    assert (everywhere == torch.tensor(found)).all()
    return {"ranks": fabric.world_size, "series": found[0], "whole": found[1], "values": found[2], "rows": found[3]}
