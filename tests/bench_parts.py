"""What both sides of `make bench` train: one model on the same data, and a callback that writes down when its steps were done.

The bench uploads this file as a source, and runs the very same file under `torchrun`.
"""

import json
import sys
import time
from pathlib import Path

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, Dataset

STAMPS = "stamps.json"
WIDTH, BATCH, ROWS = 384, 64, 4096


class Stamps(pl.Callback):
    """After each optimizer step of rank 0: the clock, in seconds since 1970, and the processor time that the process has used.

    A file in the working directory. On a machine that does other things too, the second is the fairer measure of what is done.
    """

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def on_train_batch_end(self, trainer: pl.Trainer, *args: object) -> None:
        self.times.append((time.time(), time.process_time()))
        if len(self.times) == 1:
            self._write(trainer)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._write(trainer)

    def _write(self, trainer: pl.Trainer) -> None:
        if trainer.is_global_zero:
            Path(STAMPS).write_text(json.dumps(self.times))


class Net(pl.LightningModule):
    """A few dense layers: a step of some milliseconds."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        layers = [part for _ in range(3) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
        self.net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class Rows(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """`length` rows, the same ones again and again."""

    def __init__(self, length: int, width: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.length = length
        self.x, self.y = torch.randn(ROWS, width, generator=generator), torch.randn(ROWS, 1, generator=generator)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index % ROWS], self.y[index % ROWS]


class Noise(pl.LightningDataModule):
    """One epoch of at least `steps` batches for each of `ranks` ranks."""

    def __init__(self, steps: int, ranks: int = 2, width: int = WIDTH, batch: int = BATCH) -> None:
        super().__init__()
        self.length, self.width, self.batch = steps * batch * ranks, width, batch

    def train_dataloader(self) -> DataLoader[tuple[torch.Tensor, torch.Tensor]]:
        return DataLoader(Rows(self.length, self.width), batch_size=self.batch)


def trainer(steps: int, callbacks: list[pl.Callback], **said: object) -> pl.Trainer:
    """As lean as Lightning gets: what is compared with it shall not look good beside a bar, a logger or checkpoints."""
    off = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    return pl.Trainer(accelerator="cpu", max_steps=steps, max_epochs=1, callbacks=callbacks, **off, **said)  # type: ignore[arg-type]


if __name__ == "__main__":
    steps = int(sys.argv[1])
    pl.seed_everything(1, verbose=False)
    trainer(steps, [Stamps()], devices=2, strategy="ddp").fit(Net(), datamodule=Noise(steps))
