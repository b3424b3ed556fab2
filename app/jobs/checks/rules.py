"""Rules that several kinds share, each with the pointer of what to change."""

import math
from collections.abc import Sequence
from typing import Protocol

from app.jobs.checks.facts import Findings, SeriesFacts
from app.jobs.checks.neighbours import exclusion_zone, has_pair, largest_window


class Distance(Protocol):
    @property
    def normalize(self) -> bool: ...
    @property
    def p(self) -> float: ...


def check_distance(found: Findings, params: Distance) -> None:
    if math.isinf(params.p):
        found.error("/params/p", "p is infinite, but the Chebyshev distance is not supported; p is a finite number.")
    elif params.p < 1:
        found.error("/params/p", f"p is {params.p:g}, but a p-norm needs p of at least 1.")
    elif params.normalize and params.p != 2.0:
        found.warn(f"p = {params.p:g} has no effect on z-normalised distances; send `normalize: false` for the p-norm.")


def check_share(found: Findings, percentage: float, of: str) -> None:
    if percentage <= 0:
        found.error(
            "/params/percentage", f"percentage is {percentage:g}, but it is a share of {of} and must be above 0."
        )
    elif percentage > 1:
        advice = f"; for {percentage:g} percent, send {percentage / 100:g}" if 2 <= percentage <= 100 else ""
        found.error(
            "/params/percentage",
            f"percentage is {percentage!r}, but it is a share of {of}, above 0 and at most 1{advice}.",
        )


def check_least_window(found: Findings, pointer: str, window: int) -> bool:
    """Whether a window is long enough to be looked at any further."""
    if window < 3:
        found.error(pointer, f"The window is {window}, but a window needs at least 3 samples.")
    return window >= 3


def advice_for(largest: int) -> str:
    return f"the largest window that works is {largest}" if largest >= 3 else "choose another stretch or column"


def check_fits(found: Findings, window: int, facts: SeriesFacts, largest: int, pointer: str = "/params/window") -> bool:
    """Whether a series has a window of such a length at all; `largest` is the largest that works."""
    longest = facts.longest_run()
    if facts.length == 0:
        found.error(facts.pointer, f"{facts.label[0].upper()}{facts.label[1:]} is empty.")
    elif window > facts.length:
        found.error(
            pointer, f"The window is {window}, but {facts.label} has only {facts.length} values; {advice_for(largest)}."
        )
    elif longest < window:
        found.error(
            pointer,
            f"Every window of {window} values in {facts.label} touches a missing or infinite one (the longest whole stretch is "
            f"{longest}); {advice_for(largest)}.",
        )
    else:
        return True
    return False


def check_all_fit(found: Findings, window: int, series: Sequence[SeriesFacts], largest: int) -> None:
    """Each series must have a window. Where none has one the window is at fault, else the series without one."""
    without = [each for each in series if each.longest_run() < window]
    everywhere = len(without) == len(series)
    for each in without[:1] if everywhere else without:
        check_fits(found, window, each, largest, "/params/window" if everywhere else each.pointer)


def check_pair(found: Findings, window: int, series: SeriesFacts, pointer: str = "/params/window") -> bool:
    """Whether some window has a neighbour in its own series."""
    if has_pair(series, window):
        return True
    largest = largest_window(series)
    advice = f"the largest window that works is {largest}" if largest else "no window works; send a longer series"
    found.error(
        pointer,
        f"With a window of {window}, no window of {series.label} has a neighbour outside its exclusion zone of "
        f"{exclusion_zone(window)} samples; {advice}.",
    )
    return False
