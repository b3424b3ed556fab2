"""What the checks know of a series, and how they say what they found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.kit.problems import FieldError

Runs = Sequence[tuple[int, int]]
"""Stretches [start, stop) in order."""


@dataclass(frozen=True)
class SeriesFacts:
    """What the checks need to know of one series: its length and its stretches of finite values."""

    label: str
    length: int
    finite: Runs
    identity: object = None
    """Equal for two references to the very same values."""
    pointer: str = "/params/series"
    """Where the request names it."""
    constant: bool = False
    """All its finite values are one. Looked up only for the dimensions of a multidimensional profile."""

    def longest_run(self) -> int:
        return max((stop - start for start, stop in self.finite), default=0)

    def whole_windows(self, window: int) -> int:
        """How many windows have no missing or infinite value."""
        return sum(max(0, stop - start - window + 1) for start, stop in self.finite)

    def first_and_last(self, window: int) -> tuple[int, int] | None:
        """The first and the last window without a non-finite value."""
        whole = [run for run in self.finite if run[1] - run[0] >= window]
        return (whole[0][0], whole[-1][1] - window) if whole else None


def finite_runs(length: int, gaps: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches between `gaps`, which are in order and within [0, length)."""
    runs, at = [], 0
    for start, stop in gaps:
        if start > at:
            runs.append((at, start))
        at = stop
    if at < length:
        runs.append((at, length))
    return runs


def common_runs(one: Runs, other: Runs) -> list[tuple[int, int]]:
    """The stretches that lie in a run of both."""
    runs, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        start, stop = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < stop:
            runs.append((start, stop))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return runs


@dataclass
class Findings:
    """What is wrong, and what is merely worth saying."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, pointer: str, detail: str) -> None:
        self.errors.append(FieldError(pointer=pointer, detail=detail))

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
