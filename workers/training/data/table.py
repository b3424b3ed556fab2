"""`Table`: from a file of rows to loaders of features and targets."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import LightningDataModule
from lightning.pytorch.utilities import rank_zero_warn

from workers.training.data.arguments import at_least, listed, nonzero, shares
from workers.training.data.columns import Encoding, Rows, known
from workers.training.data.files import Floats, is_number, read_table
from workers.training.data.learning import learn_features, learn_target
from workers.training.data.loader import Loader, loader, without_validation
from workers.training.data.rows import RowSet

if TYPE_CHECKING:
    import pyarrow as pa


class Table(LightningDataModule):
    """Rows of a table: one column to predict, and others to predict it from.

    Numbers are standardised and text becomes one number per category, both learned on the training rows alone; a missing
    number is the mean and a sign that it was missing. Rows whose target is missing take no part in training; a prediction is
    made for them too. The model of this package that it is used with takes its sizes from here.

    table: A Parquet file, or a reference to a dataset.
    target: The column to predict.
    features: The columns to predict it from. Where left out, all columns of numbers and those of few different texts.
    kind: Whether the target is a label or a value. With auto the model decides, else text is labels, numbers values.
    validation: Share of the rows for validation, at least 0 and below 1.
    test: Share of the rows for test.
    split: Which rows these are, drawn at random or, ordered, the last ones.
    split_seed: Of the random split. The same seed gives the same rows in every job.
    batch_size: Rows in a batch, in each process.
    max_categories: How many different texts a column may have to be a feature by itself. Of a named one the most frequent count.
    predict: Which rows a prediction is made for, all, those of the test part, or those whose target is missing.
    num_workers: Processes that make batches beside the training; batches are cheap, so none are needed.
    """

    def __init__(
        self, table: str, target: str, features: str | list[str] | None = None,
        kind: Literal["auto", "label", "value"] = "auto", validation: float = 0.2, test: float = 0.1,
        split: Literal["random", "ordered"] = "random", split_seed: int = 0, batch_size: int = 64,
        max_categories: int = 50, predict: Literal["all", "test", "missing"] = "all", num_workers: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        shares(validation, test)
        self.path, self.target_name = table, target
        self.names = [features] if isinstance(features, str) else features
        self.kind, self.validation, self.test, self.split, self.split_seed = kind, validation, test, split, split_seed
        self.batch_size, self.max_categories = (
            at_least("batch_size", batch_size, 1),
            at_least("max_categories", max_categories, 2),
        )
        self.predict, self.num_workers = predict, at_least("num_workers", num_workers, 0)
        at_least("split_seed", split_seed, 0)
        self.table: pa.Table | None = None
        self.encoding = Encoding()
        self.rows: dict[str, Rows] = {}
        self._encoded: tuple[npt.NDArray[np.float32], Floats | None] | None = None

    @property
    def inputs(self) -> int:
        """How many numbers a row of features is."""
        return self.encoding.width

    @property
    def classes(self) -> list[str] | None:
        """The labels, in the order of their numbers; None for values, or where there is no target."""
        return self.encoding.target.values if self.encoding.target else None

    def setup(self, stage: str | None = None) -> None:
        """Read the table, split it, and learn how to encode it. Raises ValueError where it cannot serve."""
        if not self.validation:
            without_validation(self.trainer)
        if self.table is not None:
            return
        table = read_table(self.path, "table")
        there = self.target_name in table.column_names
        if not there and stage != "predict":
            raise ValueError(f"`target` is `{self.target_name}`, but the columns are {listed(table.column_names)}.")
        self.rows = self._split(known(table.column(self.target_name)) if there else np.zeros(table.num_rows, bool))
        train = self.rows["train"] if len(self.rows["train"]) else np.arange(table.num_rows)
        features, left_out = learn_features(table, self.names, self.target_name, train, self.max_categories)
        if left_out:
            rank_zero_warn(f"Left out of the features: {'; '.join(left_out)}. Name what you need in `features`.")
        target = None
        if there and len(self.rows["train"]):
            column = table.column(self.target_name)
            target = learn_target(column, self.target_name, self._kind(is_number(column.type)), train)
        self.table, self.encoding = table, Encoding(features, target)

    def train_dataloader(self) -> Loader:
        return self._loader("train")

    def val_dataloader(self) -> Loader:
        nonzero("validation", self.validation)
        return self._loader("validate")

    def test_dataloader(self) -> Loader:
        nonzero("test", self.test)
        return self._loader("test")

    def predict_dataloader(self) -> Loader:
        return self._loader("predict")

    def in_units(self, values: torch.Tensor) -> torch.Tensor:
        """values: (b,), as the batch's targets are. Returns float64 (b,) in the target's own units, on the CPU."""
        target = self.encoding.target
        plain = values.detach().to("cpu", torch.float64)
        return plain if target is None else plain * target.scale + target.center

    def state_dict(self) -> dict[str, Any]:
        return self.encoding.to_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Encode as in training, whatever this table holds."""
        self.encoding, self._encoded = Encoding.from_dict(state), None

    def _kind(self, numeric: bool) -> Literal["label", "value"]:
        models: Any = getattr(self.trainer and self.trainer.lightning_module, "target_kind", None)
        if self.kind != "auto":
            if models and models != self.kind:
                raise ValueError(f"`kind` is {self.kind!r}, but the model predicts a {models}. Leave it out.")
            return self.kind
        return models or ("value" if numeric else "label")

    def _split(self, has_target: npt.NDArray[np.bool_]) -> dict[str, Rows]:
        rows = np.flatnonzero(has_target)
        if self.split == "random":
            rows = np.random.default_rng(self.split_seed).permutation(rows)
        validation, test = int(len(rows) * self.validation), int(len(rows) * self.test)
        trained = len(rows) - validation - test
        parts = {
            "train": rows[:trained],
            "validate": rows[trained : trained + validation],
            "test": rows[trained + validation :],
        }
        predicted = {"all": np.arange(len(has_target)), "test": parts["test"], "missing": np.flatnonzero(~has_target)}
        return {name: np.sort(part) for name, part in {**parts, "predict": predicted[self.predict]}.items()}

    def _loader(self, role: str) -> Loader:
        assert self.table is not None, "setup comes first"
        if not len(self.rows[role]):
            raise ValueError(
                f"The {'training' if role == 'train' else role} part of the table has no row; of {self.table.num_rows:,} rows "
                f"{sum(len(self.rows[part]) for part in ('train', 'validate', 'test')):,} have a `{self.target_name}`."
            )
        if self._encoded is None:
            target = self.encoding.target
            has_target = target is not None and target.name in self.table.column_names
            column = self.table.column(target.name) if target and has_target else None
            self._encoded = self.encoding.encode(self.table), target.encode(column) if target and column else None
        features, targets = self._encoded
        data = RowSet(
            features, None if role == "predict" else targets, self.rows[role], labels=self.classes is not None
        )
        return loader(data, role, self.trainer, self.batch_size, self.num_workers)
