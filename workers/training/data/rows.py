"""Rows of a table as tensors."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from workers.training.data.columns import Rows
from workers.training.data.files import Floats
from workers.training.data.loader import Batch, told


class RowSet(Dataset[Batch]):
    """Rows as tensors.

    A batch: features float32 (b, inputs); target float32 (b,), or int64 for labels, only with targets; index int64 (b,), the
    row in the table; counts bool (b,), false for a repeated row.
    """

    def __init__(self, features: npt.NDArray[np.float32], target: Floats | None, rows: Rows, *, labels: bool) -> None:
        self.features, self.target, self.rows, self.labels = features, target, rows, labels

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Batch:
        return {name: values[0] for name, values in self.__getitems__([index]).items()}

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        wanted, counts = told(indices)
        rows = self.rows[wanted]
        batch = {
            "features": torch.from_numpy(self.features[rows]),
            "index": torch.from_numpy(rows),
            "counts": torch.from_numpy(counts),
        }
        if self.target is not None:
            batch["target"] = torch.from_numpy(self.target[rows].astype(np.int64 if self.labels else np.float32))
        return batch
