"""Every rule of a pan matrix profile."""

from bisect import bisect_right
from collections.abc import Sequence

from app.jobs.checks.facts import Findings, SeriesFacts
from app.jobs.checks.neighbours import largest_window
from app.jobs.checks.rules import check_distance, check_fits, check_least_window, check_pair, check_share
from workers.contract import PanProfileParams
from workers.sizes import largest_pan_window, pan_windows

SHORTEST = 5
"""Values of the shortest series with a window of three."""


def check(params: PanProfileParams, given: Sequence[SeriesFacts]) -> Findings:
    """`given`: the series."""
    found, (series,) = Findings(), given
    check_distance(found, params)
    check_share(found, params.percentage, "the distances")
    if params.step < 1:
        found.error("/params/step", f"step is {params.step}, but from one window to the next is at least 1.")
    if params.pre_scrump and params.percentage >= 1:
        found.warn("`pre_scrump` has no effect on an exact profile; send a `percentage` below 1 for an approximation.")
    if _check_windows(found, params, series):
        _check_values(found, params, series)
    return found


def _check_windows(found: Findings, params: PanProfileParams, series: SeriesFacts) -> bool:
    """Whether there is a window to visit. STUMPY clamps what is out of bounds, and visits other windows than were asked for."""
    if not check_least_window(found, "/params/min_window", params.min_window):
        return False
    if series.length < SHORTEST:
        found.error(
            series.pointer, f"{series.label} has {series.length} values, but {SHORTEST} is the least for any window."
        )
        return False
    largest, longest = largest_pan_window(series.length), params.max_window
    at_most = f"with {series.length} values, the largest window that works is {largest}"
    if params.min_window > largest:
        found.error("/params/min_window", f"min_window is {params.min_window}, but {at_most}.")
    elif longest is not None and longest < params.min_window:
        found.error(
            "/params/max_window", f"max_window is {longest}, but must be at least min_window, {params.min_window}."
        )
    elif longest is not None and longest > largest:
        found.error("/params/max_window", f"max_window is {longest}, but {at_most}.")
    else:
        return True
    return False


def _check_values(found: Findings, params: PanProfileParams, series: SeriesFacts) -> None:
    fits = check_fits(found, params.min_window, series, largest_window(series), "/params/min_window")
    if not fits or not check_pair(found, params.min_window, series, "/params/min_window") or params.step < 1:
        return
    visited, largest = pan_windows(params, series.length), largest_window(series)
    if beyond := len(visited) - bisect_right(visited, largest):
        found.warn(
            f"{beyond} of {len(visited)} windows are longer than {largest}, beyond which missing values leave no window of "
            f"{series.label} a neighbour: their distances are all null."
        )
