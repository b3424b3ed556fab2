"""Opening the series a task names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.contract import Source
from workers.failures import InvalidInput
from workers.matrix_profile.profile import Floats, Ints


@dataclass(frozen=True)
class Series:
    """values: float64 (n,), non-finite where missing.  times_us: int64 (n,), microseconds since 1970 UTC, or None."""

    name: str
    values: Floats
    times_us: Ints | None = None

    def windows(self, m: int) -> int:
        """How many windows of `m` samples there are. Raises InvalidInput where there is none."""
        if m > len(self.values):
            raise InvalidInput(f"a window of {m} samples does not fit into {self.name!r}, which has {len(self.values)}")
        return len(self.values) - m + 1


def load(source: Mapping[str, Any]) -> Series:
    """Read the stretch a `Source` names into memory; `None` among inline values is NaN."""
    seen = look(source)
    times = None if seen.times_us is None else np.array(seen.times_us)
    return Series(seen.name, np.array(seen.values, dtype=np.float64), times)


def look(source: Mapping[str, Any]) -> Series:
    """The same stretch, read-only and left in its file where it has one."""
    told = Source.model_validate(source)
    stretch = slice(told.start, told.stop)
    times = None if told.time_path is None else np.load(told.time_path, mmap_mode="r", allow_pickle=False)[stretch]
    if told.path is not None:
        return Series(told.name, np.load(told.path, mmap_mode="r", allow_pickle=False)[stretch], times)
    inline = [np.nan if value is None else value for value in told.values or []]
    return Series(told.name, np.array(inline, dtype=np.float64)[stretch], times)
