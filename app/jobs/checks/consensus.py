"""Every rule of a consensus motif."""

from collections.abc import Sequence

from app.jobs.checks.facts import Findings, SeriesFacts
from app.jobs.checks.rules import check_all_fit, check_distance, check_least_window
from workers.contract import ConsensusMotifParams


def check(params: ConsensusMotifParams, given: Sequence[SeriesFacts]) -> Findings:
    """`given`: the series among which to find a consensus."""
    found = Findings()
    check_distance(found, params)
    if len(given) < 2:
        found.error(
            "/params/series",
            "A consensus motif is what several series have in common, and there is one series; send two or more.",
        )
    if not check_least_window(found, "/params/window", params.window):
        return found
    check_all_fit(found, params.window, given, min(each.longest_run() for each in given))
    if not found.errors:
        _warn_of_twins(found, given)
    return found


def _warn_of_twins(found: Findings, given: Sequence[SeriesFacts]) -> None:
    seen: dict[object, SeriesFacts] = {}
    for each in given:
        twin = each.identity is not None and seen.setdefault(each.identity, each)
        if twin and twin is not each:
            found.warn(f"{each.label} is the same as {twin.label}, and between them every window is a perfect match.")
            return
