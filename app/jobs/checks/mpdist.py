"""Every rule of an MPdist."""

import math
from collections.abc import Sequence

from app.jobs.checks.facts import Findings, SeriesFacts
from app.jobs.checks.rules import check_distance, check_fits, check_least_window, check_share
from workers.contract import MpdistParams
from workers.sizes import windows


def check(params: MpdistParams, given: Sequence[SeriesFacts]) -> Findings:
    """`given`: both series."""
    found, (a, b) = Findings(), given
    check_distance(found, params)
    check_share(found, params.percentage, "both lengths")
    if params.k is not None and params.k < 0:
        found.error("/params/k", f"k is {params.k}, but values are counted from 0.")
    if not check_least_window(found, "/params/window", params.window):
        return found
    for each in given:
        check_fits(found, params.window, each, min(a.longest_run(), b.longest_run()))
    if not found.errors:
        _check_value(found, params, a, b)
    return found


def _check_value(found: Findings, params: MpdistParams, a: SeriesFacts, b: SeriesFacts) -> None:
    """Which of the joins' values is the answer, and whether there is one."""
    values = windows(a.length, params.window) + windows(b.length, params.window)
    if params.k is not None and params.k >= values:
        found.error(
            "/params/k", f"k is {params.k}, but the joins have {values} values, counted from 0: at most {values - 1}."
        )
        return
    if params.k is not None and "percentage" in params.model_fields_set:
        found.warn(f"`k` is {params.k}, so `percentage` has no effect; send one of them.")
    # STUMPY's choice: of infinite values none is taken.
    k = min(math.ceil(params.percentage * (a.length + b.length)), values - 1) if params.k is None else params.k
    whole = a.whole_windows(params.window) + b.whole_windows(params.window)
    if k >= whole:
        found.warn(
            f"The answer would be value {k} of the sorted joins, but only {whole} windows are free of missing values; the largest "
            "of these is the answer."
        )
