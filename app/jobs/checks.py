"""What a job request must satisfy before it is accepted. Pure: what is known of the series comes in, findings go out."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.kit.problems import FieldError
from workers.contract import MatrixProfileParams
from workers.operations import Size

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

    def longest_run(self) -> int:
        return max((stop - start for start, stop in self.finite), default=0)

    def first_and_last(self, window: int) -> tuple[int, int] | None:
        """The first and the last window without a non-finite value."""
        whole = [run for run in self.finite if run[1] - run[0] >= window]
        return (whole[0][0], whole[-1][1] - window) if whole else None


def finite_runs(length: int, gaps: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches between `gaps`, which are in order and within [0, length)."""
    runs, at = [], 0
    for start, stop in gaps:
        if start > at:
            runs.append((at, start))
        at = stop
    if at < length:
        runs.append((at, length))
    return runs


@dataclass
class Findings:
    """What is wrong, and what is merely worth saying."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, pointer: str, detail: str) -> None:
        self.errors.append(FieldError(pointer=pointer, detail=detail))


def exclusion_zone(window: int) -> int:
    """STUMPY's: windows up to ⌈window / 4⌉ apart are trivial matches of one another."""
    return math.ceil(window / 4)


def check_matrix_profile(params: MatrixProfileParams, series: SeriesFacts, against: SeriesFacts | None) -> Findings:
    """Every rule of a matrix profile, each with the pointer of what to change."""
    found = Findings()
    if params.p < 1:
        found.error("/params/p", f"p is {params.p:g}, but a p-norm needs p of at least 1.")
    elif params.normalize and params.p != 2.0:
        found.warnings.append(
            f"p = {params.p:g} has no effect on z-normalised distances; send `normalize: false` for the p-norm."
        )
    if params.k < 1:
        found.error("/params/k", f"k is {params.k}, but at least 1 neighbour must be asked for.")
    if params.window < 3:
        found.error("/params/window", f"The window is {params.window}, but a window needs at least 3 samples.")
        return found
    # In a self-join a window needs a neighbour too, so that what fits is not yet what works.
    _check_series(found, params.window, "/params/series", series, largest_window(series) if against is None else None)
    if against is not None:
        _check_series(found, params.window, "/params/against", against, None)
    if not found.errors:
        _check_neighbours(found, params, series, against)
    return found


def _check_series(found: Findings, window: int, pointer: str, facts: SeriesFacts, largest: int | None) -> None:
    """Whether a window fits at all; `largest` is the largest that works, where that is less than the longest whole stretch."""
    longest = facts.longest_run()
    largest = longest if largest is None else largest
    advice = f"the largest window that works is {largest}" if largest >= 3 else "choose another stretch or column"
    if facts.length == 0:
        found.error(pointer, f"{facts.label} is empty.")
    elif window > facts.length:
        found.error(
            "/params/window", f"The window is {window}, but {facts.label} has only {facts.length} values; {advice}."
        )
    elif longest < window:
        found.error(
            "/params/window",
            f"Every window of {window} values in {facts.label} touches a missing or infinite one (the longest whole stretch is "
            f"{longest}); {advice}.",
        )


def _check_neighbours(
    found: Findings, params: MatrixProfileParams, series: SeriesFacts, against: SeriesFacts | None
) -> None:
    other = against or series
    candidates = other.length - params.window + 1
    if params.k > candidates:
        found.error(
            "/params/k", f"k is {params.k}, but {other.label} has only {candidates} windows of {params.window} values."
        )
    if against is not None:
        if series.identity is not None and series.identity == against.identity:
            found.warnings.append(
                "The series is compared with itself as an AB-join, which has no exclusion zone, so every window matches itself "
                "at distance 0; leave out `against` for a self-join."
            )
        return
    if not has_pair(series, params.window):
        largest = largest_window(series)
        advice = f"the largest window that works is {largest}" if largest else "no window works; send a longer series"
        found.error(
            "/params/window",
            f"With a window of {params.window}, no window of {series.label} has a neighbour outside its exclusion zone of "
            f"{exclusion_zone(params.window)} samples; {advice}.",
        )
    elif lonely := lonely_windows(series, params.window):
        found.warnings.append(
            f"{lonely} {'window' if lonely == 1 else 'windows'} in the middle of {series.label}: no neighbour lies outside the "
            f"exclusion zone of {exclusion_zone(params.window)} samples, so the distance there is null."
        )


def has_pair(series: SeriesFacts, window: int) -> bool:
    """Whether two whole windows lie further apart than the exclusion zone."""
    ends = series.first_and_last(window)
    return ends is not None and ends[1] - ends[0] > exclusion_zone(window)


def largest_window(series: SeriesFacts) -> int:
    """The largest window with a non-trivial neighbour, 0 where none has; a smaller one always has one too, so the search can halve."""
    low, high = 2, series.longest_run()
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if has_pair(series, middle) else (low, middle - 1)
    return low if low >= 3 else 0


def lonely_windows(series: SeriesFacts, window: int) -> int:
    """How many whole windows have every other one within their exclusion zone."""
    ends = series.first_and_last(window)
    if ends is None:
        return 0
    zone = exclusion_zone(window)
    first, last = ends[1] - zone, ends[0] + zone
    return sum(max(0, min(last, stop - window) - max(first, start) + 1) for start, stop in series.finite)


def size_of(params: MatrixProfileParams, series: SeriesFacts, against: SeriesFacts | None) -> Size:
    return Size(
        windows=series.length - params.window + 1,
        windows_against=None if against is None else against.length - params.window + 1,
        window=params.window,
        k=params.k,
    )
