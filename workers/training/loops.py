"""A training loop in plain sight, for jobs under Fabric: what `train(fabric, …)` of one's own would look like."""

from typing import Any, Literal

import torch
from lightning.fabric import Fabric
from torch.nn import functional

from workers.training.data import SeriesWindows
from workers.training.models.nets import forecasting


def fit(
    fabric: Fabric,
    series: str | list[str],
    context: int,
    horizon: int = 1,
    kind: Literal["linear", "mlp", "tcn", "transformer"] = "linear",
    epochs: int = 1,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
) -> dict[str, float]:
    """Train a forecaster of `horizon` samples from `context` samples of a series, and return its mean absolute errors.

    Returns `train_mae` of the last epoch, and `val_mae` on the series' last fifth, both in the unit of the data.
    """
    data = SeriesWindows(series, context, horizon, validation=0.2, test=0.0, batch_size=batch_size)
    data.setup()
    loaders: Any = (data.train_dataloader(), data.val_dataloader())
    training, validation = fabric.setup_dataloaders(*loaders, use_distributed_sampler=False)
    network = forecasting(kind, data.channels, context, horizon, width=64, layers=3, dropout=0.0)
    model, optimizer = fabric.setup(network, torch.optim.AdamW(network.parameters(), lr=learning_rate))
    train_mae = val_mae = 0.0
    for epoch in range(epochs):
        loaders[0].shards.set_epoch(epoch)
        train_mae = _epoch(fabric, model, training, optimizer)
        with torch.no_grad():
            val_mae = _epoch(fabric, model, validation, None)
        fabric.log_dict({"train_mae": train_mae, "val_mae": val_mae}, step=epoch)
    return {"train_mae": train_mae, "val_mae": val_mae}


def _epoch(fabric: Fabric, model: Any, loader: Any, optimizer: Any) -> float:
    """The mean absolute error over a loader, of all ranks; with an optimizer, a step for each batch."""
    model.train(optimizer is not None)
    total = torch.zeros(2, device=fabric.device, dtype=torch.float64)
    for batch in loader:
        loss = functional.l1_loss(model(batch["context"]), batch["target"])
        if optimizer is not None:
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
        total += torch.stack([loss.detach().double() * len(batch["counts"]), total.new_tensor(len(batch["counts"]))])
    error, samples = fabric.all_reduce(total, reduce_op="sum")
    return float(error / samples)
