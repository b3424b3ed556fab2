"""Every rule of a multidimensional profile."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from app.jobs.checks.facts import Findings, SeriesFacts, common_runs
from app.jobs.checks.neighbours import has_pair, largest_window
from app.jobs.checks.rules import check_all_fit, check_distance, check_least_window, check_pair
from workers.contract import MultidimensionalProfileParams


def check(params: MultidimensionalProfileParams, given: Sequence[SeriesFacts]) -> Findings:
    """`given`: the dimensions."""
    found = Findings()
    check_distance(found, params)
    _check_include(found, params.include, len(given))
    if not check_least_window(found, "/params/window", params.window) or not _check_lengths(found, given):
        return found
    # One dimension with a pair gives row 0; the others must at least have a window to take part with.
    best = max(given, key=largest_window)
    check_all_fit(found, params.window, given, min(largest_window(best), *(each.longest_run() for each in given)))
    if not found.errors and check_pair(found, params.window, best):
        _warn(found, params, given)
    return found


def _check_include(found: Findings, include: list[int] | None, dimensions: int) -> None:
    if include == []:
        found.error("/params/include", "`include` is empty; name at least one dimension, or leave it out.")
    first: dict[int, int] = {}
    for at, index in enumerate(include or ()):
        if index >= dimensions:
            known = "there is one dimension, number 0" if dimensions == 1 else f"dimensions are 0 to {dimensions - 1}"
            found.error(f"/params/include/{at}", f"`include` names dimension {index}, but {known}.")
        elif first.setdefault(index, at) != at:
            found.error(f"/params/include/{at}", f"`include` names dimension {index} twice; name each once.")


def _check_lengths(found: Findings, given: Sequence[SeriesFacts]) -> bool:
    first = next((each.length for each in given if each.length), 0)
    for each in given:
        if each.length == 0:
            found.error(each.pointer, f"{each.label[0].upper()}{each.label[1:]} is empty.")
        elif each.length != first:
            found.error(
                each.pointer,
                f"{each.label} has {each.length} values, but the first dimension has {first}; dimensions are of "
                "equal length: cut them with `start` and `stop`, or send as many values.",
            )
    return not any(error.pointer == each.pointer for error in found.errors for each in given)


def _warn(found: Findings, params: MultidimensionalProfileParams, given: Sequence[SeriesFacts]) -> None:
    dead = [each for each in given if each.constant]
    if dead:
        named = ", ".join(each.label for each in dead[:5]) + (f" and {len(dead) - 5} more" if len(dead) > 5 else "")
        found.warn(
            f"{named} never changes: windows of one value are all alike, at distance 0, and the best dimension is always such a "
            "one, so the first row of the profile is 0 throughout."
            if not params.discords
            else f"{named} never changes: windows of one value are all alike, at distance 0."
        )
    together = replace(given[0], finite=reduce(common_runs, (each.finite for each in given)))
    if len(given) > 1 and not has_pair(together, params.window):
        found.warn(
            f"No two windows of {params.window} values are whole in all {len(given)} dimensions at once, so at least the last row "
            "of the profile has no distances."
        )
