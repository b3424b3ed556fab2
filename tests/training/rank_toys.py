"""Models that behave, or misbehave at a step that a test chooses. Only ranks import this."""

import os
import signal
import time
from pathlib import Path

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


def warm() -> None:
    """What a nursery of these tests loads: this module, and the ranks'."""
    import workers.training.rank  # noqa: F401


def keep(reporter):
    """Serve a store until killed, and tell at which port."""
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    reporter._send("port", {"port": store.port})
    time.sleep(3600)


class Numbers(LightningDataModule):
    """y = 2x + 1, without noise."""

    def __init__(
        self, count: int = 40, batch_size: int = 4, workers: int = 0, uneven: bool = False, shuffle: bool = False
    ):
        super().__init__()
        self.count, self.batch_size, self.workers, self.uneven = count, batch_size, workers, uneven
        self.shuffle = shuffle

    def _loader(self, shuffle: bool = False) -> DataLoader:
        count = self.count + (8 * int(os.environ["RANK"]) if self.uneven else 0)
        x = torch.arange(count, dtype=torch.float32).unsqueeze(1) / count
        # By its name: Lightning 2.6 cannot predict from a loader whose `batch_size` was given by position.
        return DataLoader(
            TensorDataset(x, 2 * x + 1), batch_size=self.batch_size, num_workers=self.workers, shuffle=shuffle
        )

    def train_dataloader(self) -> DataLoader:
        return self._loader(self.shuffle)

    def val_dataloader(self) -> DataLoader:
        return self._loader()

    def test_dataloader(self) -> DataLoader:
        return self._loader()

    def predict_dataloader(self) -> DataLoader:
        return self._loader()


class Stream(IterableDataset):
    """As many batches as the rank's number wants, and no length."""

    def __init__(self, first: int, more: int):
        self.batches = first + more * int(os.environ["RANK"])

    def __iter__(self):
        for number in range(self.batches):
            x = torch.full((4, 1), float(number) / 100)
            yield x, 2 * x + 1


class StreamOfALength(Stream):
    """Says one, which it does not keep."""

    def __len__(self):
        return 40


class Streaming(LightningDataModule):
    def __init__(self, first: int = 6, more: int = 2, validates: bool = False, says: bool = False):
        super().__init__()
        self.data = (StreamOfALength if says else Stream)(first, more)
        self.validates = validates

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.data, batch_size=None)

    def val_dataloader(self) -> DataLoader | list[DataLoader]:
        return self.train_dataloader() if self.validates else []


class Plain(LightningModule):
    """A line. `at` is the step at which `_misbehave` is called, in `rank` alone where that is given."""

    def __init__(
        self,
        seconds: float = 0.0,
        at: int = -1,
        rank: int = -1,
        lr: float = 0.1,
        marker: str = "",
        validation_seconds: float = 0.0,
    ):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)
        self.seconds, self.at, self.rank, self.lr, self.marker = seconds, at, rank, lr, marker
        self.validation_seconds = validation_seconds

    def training_step(self, batch, index):
        x, y = batch
        if self.seconds:
            time.sleep(self.seconds)
        loss = torch.nn.functional.mse_loss(self.layer(x) + self.noise(x), y)
        if self.global_step == self.at and self.rank in (-1, self.global_rank):
            loss = self.misbehave(loss)
        self.log("train_loss", loss)
        self.log("mean_x", x.mean(), on_epoch=True, on_step=False, sync_dist=True)
        return loss

    def noise(self, x):
        return 0

    def misbehave(self, loss):
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        time.sleep(self.validation_seconds)
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(x), y), sync_dist=True)

    def test_step(self, batch, index):
        x, y = batch
        time.sleep(self.seconds)
        self.log("test_loss", torch.nn.functional.mse_loss(self.layer(x), y), sync_dist=True)

    def predict_step(self, batch, index):
        x, _ = batch
        return {"y": self.layer(x), "x": x[:, 0]}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class LosesItsValidation(Plain):
    """Learns well, and cannot say how well."""

    def validation_step(self, batch, index):
        self.log("val_loss", torch.tensor(float("nan") if self.global_step > self.at else 1.0))


class LogsOddNames(Plain):
    def training_step(self, batch, index):
        self.log("step", 1000.0 + self.global_step)
        self.log("epoch", 77.0)
        return super().training_step(batch, index)


class Raises(Plain):
    def misbehave(self, loss):
        raise ValueError("the toy broke on purpose")


class Nameless(Exception):
    def __str__(self):
        raise ValueError("no words")


FAULTS = {
    "long": lambda: RuntimeError("x" * 5_000_000),
    "nameless": Nameless,
    "surrogate": lambda: RuntimeError("bad \ud800 surrogate"),
    "own": lambda: RuntimeError("my own words"),
    "value": lambda: ValueError("my own words"),
    "interrupt": KeyboardInterrupt,
}


class RaisesOddly(Plain):
    """`what`, one of FAULTS, in a step or while it is made."""

    def __init__(self, what: str, building: bool = False):
        super().__init__(at=-1 if building else 1)
        self.what = what
        if building:
            raise FAULTS[what]()

    def misbehave(self, loss):
        raise FAULTS[self.what]()


class Dies(Plain):
    """kill -9, once."""

    def noise(self, x):
        return torch.rand_like(x) / 10 if self.trainer.world_size == 1 else 0

    def misbehave(self, loss):
        if not Path(self.marker).exists():
            Path(self.marker).touch()
            time.sleep(0.3)  # what was said is on its way
            os.kill(os.getpid(), signal.SIGKILL)
        return loss


class NotANumber(Plain):
    def misbehave(self, loss):
        return loss * float("nan")


class Prints(Plain):
    def misbehave(self, loss):
        print(f"hello from {self.global_rank}")
        for _ in range(400):
            print("more")
        return loss


class OutOfMemory(Plain):
    def misbehave(self, loss):
        raise MemoryError


class HoldsObjects(Dies):
    """Its hyperparameters are more than plain data, as those of many libraries' models."""

    def __init__(self, at: int = -1, marker: str = "", rank: int = -1):
        super().__init__(at=at, marker=marker, rank=rank)
        self.save_hyperparameters({"criterion": torch.nn.MSELoss()})


def returns(fabric):
    return {"huge": 10**400, "nan": float("nan"), "fine": 1}


def loop(fabric, steps: int = 20, seconds: float = 0.0, nan_at: int = -1, save: str = "", raises_on: int = -1):
    """A line under Fabric."""
    model = torch.nn.Linear(1, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    x = torch.linspace(0, 1, 16).unsqueeze(1)
    begin = 0
    if fabric.checkpoint_path:
        state = {"model": model, "step": 0}
        assert fabric.load(fabric.checkpoint_path, state) == {}
        begin = state["step"] + 1
    for step in range(begin, steps):
        time.sleep(seconds)
        loss = torch.nn.functional.mse_loss(model(x), 2 * x + 1)
        if step == nan_at:
            loss = loss * float("nan")
        if step == 3 and fabric.global_rank == raises_on:
            raise ValueError("the toy broke on purpose")
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        fabric.log("loss", loss, step=step)
    if save:
        fabric.save(save, {"model": model, "step": step})
    return {"final": loss, "world": fabric.world_size, "name": "no number"}


class PredictsNothing(Plain):
    def predict_step(self, batch, index):
        return None


def conducting(spec, reporter):
    """Steps under a conductor, in every rank at a pace of its own; rank 0 wants to stop after its 300th."""
    from workers.training.conductor import Conductor, StopAsked, any_rank
    from workers.training.rank import settle
    from workers.training.spec import RankSpec

    told = RankSpec.model_validate(spec)
    settle(told)
    torch.distributed.init_process_group("gloo")
    step, saved, agreed = 0, [], 0
    conductor = Conductor(told, lambda last: saved.append((step, last)))
    agree = conductor._agree

    def counted(due):
        nonlocal agreed
        agreed += 1
        return agree(due)

    conductor._agree = counted
    try:
        while step < 3000:
            step += 1
            time.sleep(0.001 * (1 + told.rank))
            if told.rank == 0 and step == 300:
                Path(told.stop_file).touch()
            conductor.step()
    except StopAsked:
        someone = any_rank(told.rank == 1)
        return {"step": step, "saved": saved, "looks": agreed, "someone": someone}
