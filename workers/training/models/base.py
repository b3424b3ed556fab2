"""What the models have in common: sizes taken from the data, means that count each sample once, and AdamW."""

from typing import Any, ClassVar

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from workers.training.data.loader import Batch


class Learner(LightningModule):
    """A model whose network is built when the sizes of its data are known.

    SIZES are hyperparameters that the data says where nobody else did. They are in the checkpoint, so that it can be
    loaded without the data.
    """

    SIZES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, learning_rate: float, weight_decay: float) -> None:
        super().__init__()
        if not 0 < learning_rate < float("inf"):
            raise ValueError(f"`learning_rate` is {learning_rate}, but must be above 0, such as 0.001.")
        if not 0 <= weight_decay < float("inf"):
            raise ValueError(f"`weight_decay` is {weight_decay}, but must be at least 0.")
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.net: nn.Module | None = None

    def network(self) -> nn.Module:
        """A new network of the sizes there are."""
        raise NotImplementedError

    def setup(self, stage: str) -> None:
        """Take the sizes from the data. Raises ValueError where the data and the model say different ones."""
        data = self.trainer.datamodule
        for name in self.SIZES:
            theirs = getattr(data, name, None)
            if self.hparams[name] is None:
                if theirs is None and stage == "predict":
                    continue  # a table to predict for need not have the target: the checkpoint knows
                if theirs is None:
                    raise ValueError(f"`{name}` is not known: {self.needs()}")
                self.hparams[name] = theirs
            elif theirs is not None and theirs != self.hparams[name]:
                raise ValueError(
                    f"`{name}` is {self.hparams[name]!r} in the model and {theirs!r} in the data. Leave it out of the model."
                )

    def needs(self) -> str:
        """What to say where the data does not say the sizes."""
        return f"give `data`, such as {self.FITS}, or say it in the model."

    FITS: ClassVar[str] = "workers.training.data.SeriesWindows"

    def configure_model(self) -> None:
        if self.net is None and all(self.hparams[name] is not None for name in self.SIZES):
            self.net = self.network()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the sizes that the weights have; the data takes its own from the same checkpoint."""
        trained = checkpoint.get("hyper_parameters", {})
        if differing := [name for name in self.SIZES if trained.get(name) not in (None, self.hparams[name])]:
            self.hparams.update({name: trained[name] for name in differing})
            self.net = self.network()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.net is None:
            raise ValueError(f"The model's sizes are not known: {self.needs()}")
        return self.net(inputs)  # type: ignore[no-any-return]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

    def tell_training(self, loss: Tensor, batch: Batch) -> Tensor:
        """Log the loss: `train_loss` of each step as this process sees it, `train_loss_epoch` over all of them."""
        size = float(len(next(iter(batch.values()))))
        self.log("train_loss", loss, on_step=True, on_epoch=False, prog_bar=True, batch_size=size)
        self.log("train_loss_epoch", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=size)
        return loss

    def tell(self, each: dict[str, Tensor], batch: Batch) -> None:
        """Log means over all samples that count, each once, in however many processes. each: name → float (b,)."""
        counts = _counts(batch, each)
        size = int(counts.sum())
        for name, values in each.items():
            mean = (values.float() * counts).sum() / max(size, 1)
            # As a float: Lightning takes the mean of these over the processes, and would cut off its fraction.
            self.log(name, mean, on_step=False, on_epoch=True, sync_dist=True, batch_size=float(size))


def counted(columns: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    """The rows of the samples that count, on the CPU. columns: name → (b, …)."""
    counts = _counts(batch, columns).cpu()
    return {name: values.detach().cpu()[counts] for name, values in columns.items()}


def _counts(batch: Batch, columns: dict[str, Tensor]) -> Tensor:
    """bool (b,). Other data than this package's repeats nothing, or does not say so."""
    first = next(iter(columns.values()))
    return batch.get("counts", torch.ones(len(first), dtype=torch.bool, device=first.device))
