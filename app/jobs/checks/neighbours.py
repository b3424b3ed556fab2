"""Which windows of a series have a neighbour in it, counted from its stretches of finite values."""

import math

from app.jobs.checks.facts import SeriesFacts


def exclusion_zone(window: int) -> int:
    """STUMPY's: windows up to ⌈window / 4⌉ apart are trivial matches of one another."""
    return math.ceil(window / 4)


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
