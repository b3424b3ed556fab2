"""`Classifier`: which label a row of a table has."""

from typing import Any

from torch import Tensor
from torch.nn import functional

from workers.training.data.loader import Batch
from workers.training.models.base import counted
from workers.training.models.tabular import Tabular, checked


class Classifier(Tabular):
    """Predicts which label a row has. Use it with `Table`.

    Logs `train_loss`, `val_loss` (cross entropy), `val_accuracy` and `val_accuracy_naive`, the accuracy of always saying the
    label most frequent in training (`test_…` likewise). A prediction has `index`, the row, `label`, the most probable
    label as text, and for each label `probability_<label>`, float32 (b,).

    width: Units of each layer.
    layers: How many layers beside the linear map.
    dropout: Share of units left out in training.
    learning_rate: Of AdamW, which is used where the configuration has no optimizer.
    weight_decay: Of AdamW.
    inputs: Numbers in a row of features. Where left out, what the data says.
    classes: The labels. Where left out, what the data says.
    """

    SIZES = ("inputs", "classes")
    target_kind = "label"

    def __init__(
        self, width: int = 64, layers: int = 2, dropout: float = 0.0, learning_rate: float = 3e-3,
        weight_decay: float = 1e-2, inputs: int | None = None, classes: list[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, weight_decay)
        checked(width, layers)
        self.save_hyperparameters()

    def outputs(self) -> int:
        return len(self.hparams["classes"])

    def losses(self, said: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(said.float(), target, reduction="none")

    def measures(self, prefix: str, said: Tensor, target: Tensor, data: Any) -> dict[str, Tensor]:
        each = {f"{prefix}_accuracy": (said.argmax(1) == target).float()}
        if (known := getattr(getattr(data, "encoding", None), "target", None)) is not None:
            each[f"{prefix}_accuracy_naive"] = (target == int(known.usual)).float()
        return each

    def predict_step(self, batch: Batch, batch_idx: int) -> dict[str, Any]:
        probabilities = self(batch["features"]).float().softmax(1)
        classes = self.hparams["classes"]
        named = {f"probability_{name}": probabilities[:, number] for number, name in enumerate(classes)}
        columns = counted({"index": batch["index"], "label": probabilities.argmax(1), **named}, batch)
        return {**columns, "label": [classes[number] for number in columns["label"].tolist()]}
