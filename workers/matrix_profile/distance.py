"""The distance that a job asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.matrix_profile.definition import Measure, Shapes
from workers.matrix_profile.norms import Norms
from workers.matrix_profile.series import Series
from workers.matrix_profile.treatment import Treated, treat
from workers.matrix_profile.windows import Windows


@dataclass(frozen=True)
class Distance:
    """z-normalised Euclidean, or the p-norm."""

    normalize: bool
    p: float

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "Distance":
        return cls(bool(params.get("normalize", True)), float(params.get("p", 2.0)))

    def measure(self, a: Windows, b: Windows | None = None) -> Measure:
        """As defined, on the data as they came; of `a` with itself where `b` is None."""
        other = a if b is None else b
        return Shapes(a, other) if self.normalize else Norms(a, other, self.p)

    def treat(self, series: list[Series]) -> Treated:
        return treat([each.values for each in series], normalize=self.normalize, p=self.p)
