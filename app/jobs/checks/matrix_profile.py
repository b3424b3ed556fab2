"""Every rule of a matrix profile."""

from collections.abc import Sequence

from app.jobs.checks.facts import Findings, SeriesFacts
from app.jobs.checks.neighbours import exclusion_zone, largest_window, lonely_windows
from app.jobs.checks.rules import check_distance, check_fits, check_least_window, check_pair
from workers.contract import MatrixProfileParams


def check(params: MatrixProfileParams, given: Sequence[SeriesFacts]) -> Findings:
    """`given`: the series, and the other one of an AB-join."""
    found, (series, *others) = Findings(), given
    check_distance(found, params)
    if params.k < 1:
        found.error("/params/k", f"k is {params.k}, but at least 1 neighbour must be asked for.")
    if not check_least_window(found, "/params/window", params.window):
        return found
    # In a self-join a window needs a neighbour too, so that what fits is not yet what works.
    check_fits(found, params.window, series, series.longest_run() if others else largest_window(series))
    for other in others:
        check_fits(found, params.window, other, other.longest_run())
    if not found.errors:
        _check_neighbours(found, params, series, others[0] if others else None)
    return found


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
            found.warn(
                "The series is compared with itself as an AB-join, which has no exclusion zone, so every window matches itself "
                "at distance 0; leave out `against` for a self-join."
            )
    elif check_pair(found, params.window, series) and (lonely := lonely_windows(series, params.window)):
        found.warn(
            f"{lonely} {'window' if lonely == 1 else 'windows'} in the middle of {series.label}: no neighbour lies outside the "
            f"exclusion zone of {exclusion_zone(params.window)} samples, so the distance there is null."
        )
