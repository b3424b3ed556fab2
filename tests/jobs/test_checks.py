"""What is refused, with the pointer of what to change; and the counting of windows against plain enumeration."""

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.jobs.checks import CHECKS
from app.jobs.checks.facts import Findings, SeriesFacts, common_runs, finite_runs
from app.jobs.checks.neighbours import exclusion_zone, has_pair, largest_window, lonely_windows
from app.jobs.series import _inline_gaps
from tests import oracle
from workers.contract import MatrixProfileParams

patterns = st.lists(st.booleans() | st.just(True), max_size=26)
"""Which samples are finite."""


def facts(pattern, label="the series", identity=None, pointer="/params/series") -> SeriesFacts:
    values = [1.0 if finite else math.nan for finite in pattern]
    return SeriesFacts(label, len(values), finite_runs(len(values), _inline_gaps(values)), identity, pointer)


def whole_windows(pattern, window) -> list[int]:
    return [i for i in range(len(pattern) - window + 1) if all(pattern[i : i + window])]


def neighbours(pattern, window) -> dict[int, list[int]]:
    """Each whole window's whole windows outside its exclusion zone."""
    whole = whole_windows(pattern, window)
    return {i: [j for j in whole if abs(i - j) > math.ceil(window / 4)] for i in whole}


# ---- counting ------------------------------------------------------------------------------------------------------


@given(patterns)
def test_finite_runs_are_the_maximal_stretches(pattern):
    runs = facts(pattern).finite
    assert [i for start, stop in runs for i in range(start, stop)] == [i for i, finite in enumerate(pattern) if finite]
    assert all(start < stop for start, stop in runs)
    assert all(stop < start for (_, stop), (start, _) in itertools.pairwise(runs))
    assert facts(pattern).longest_run() == max((stop - start for start, stop in runs), default=0)
    assert [facts(pattern).whole_windows(m) for m in range(3, 9)] == [
        len(whole_windows(pattern, m)) for m in range(3, 9)
    ]


@given(patterns, patterns)
def test_common_runs_are_where_both_are_finite(one, other):
    both = [a and b for a, b in zip(one, other, strict=False)]
    assert common_runs(facts(one).finite, facts(other).finite) == facts(both).finite


@given(patterns, st.integers(3, 27))
def test_first_and_last_whole_window(pattern, window):
    whole = whole_windows(pattern, window)
    assert facts(pattern).first_and_last(window) == ((whole[0], whole[-1]) if whole else None)


@given(patterns, st.integers(3, 27))
def test_whether_any_window_has_a_neighbour(pattern, window):
    assert has_pair(facts(pattern), window) == any(neighbours(pattern, window).values())


@given(patterns)
def test_the_largest_window_that_works(pattern):
    working = [m for m in range(3, len(pattern) + 1) if any(neighbours(pattern, m).values())]
    assert largest_window(facts(pattern)) == max(working, default=0)


@given(patterns, st.integers(3, 27))
@example([True] * 10, 8)
@example([True] * 8 + [False] + [True] * 4, 4)
def test_lonely_windows(pattern, window):
    lonely = [i for i, others in neighbours(pattern, window).items() if not others]
    assert lonely_windows(facts(pattern), window) == len(lonely)


@given(st.lists(st.booleans() | st.just(True), min_size=3, max_size=16), st.data())
def test_the_counts_are_those_of_a_real_profile(pattern, data):
    window = data.draw(st.integers(3, len(pattern)))
    series = [math.sin(i * i) if finite else math.nan for i, finite in enumerate(pattern)]
    distances = oracle.matrix_profile(series, window).distances[:, 0]
    found = [i for i in whole_windows(pattern, window) if math.isfinite(distances[i])]
    assert has_pair(facts(pattern), window) == bool(found)
    assert lonely_windows(facts(pattern), window) == len(whole_windows(pattern, window)) - len(found)


@given(st.integers(3, 10_000))
def test_the_exclusion_zone_is_a_quarter_rounded_up(window):
    assert exclusion_zone(window) * 4 >= window > (exclusion_zone(window) - 1) * 4


# ---- refusals ------------------------------------------------------------------------------------------------------

GOOD = [True] * 40


def unbounded(model, said):
    """Params as the checks may get them, an infinite p among them, which the border refuses first."""
    return model.model_validate({**said, "p": 1.0}).model_copy(update={"p": said.get("p", 2.0)})


def check(pattern=GOOD, against=None, **params) -> Findings:
    said = {"series": {"values": []}, "window": 8, **params}
    if against is not None:
        said["against"] = {"values": []}
    others = [] if against is None else [facts(against, "the other series", pointer="/params/against")]
    return CHECKS["matrix_profile"](unbounded(MatrixProfileParams, said), [facts(pattern), *others])


def only(found: Findings):
    [error] = found.errors
    return error.pointer, error.detail


def test_a_good_request_has_nothing_to_say():
    assert check() == check(k=3) == check(against=GOOD) == check(normalize=False, p=1.0) == Findings()


@pytest.mark.parametrize(
    ("params", "pointer", "says"),
    [
        ({"window": 2}, "/params/window", "The window is 2, but a window needs at least 3"),
        ({"window": 0}, "/params/window", "The window is 0"),
        ({"window": -5}, "/params/window", "The window is -5"),
        ({"window": 41}, "/params/window", "the series has only 40 values; the largest window that works is 31"),
        ({"window": 10**30}, "/params/window", "the largest window that works is 31"),
        ({"window": 40}, "/params/window", "exclusion zone of 10 samples; the largest window that works is 31"),
        ({"k": 0}, "/params/k", "k is 0"),
        ({"k": 34}, "/params/k", "the series has only 33 windows of 8 values"),
        ({"k": 10, "against": [True] * 12}, "/params/k", "the other series has only 5 windows"),
        ({"p": math.inf}, "/params/p", "the Chebyshev distance is not supported"),
        ({"p": 0.5}, "/params/p", "p is 0.5, but a p-norm needs p of at least 1"),
        ({"p": 0.5, "normalize": False}, "/params/p", "p is 0.5"),
        ({"pattern": []}, "/params/series", "The series is empty"),
        ({"against": []}, "/params/against", "The other series is empty"),
        ({"against": [True] * 7}, "/params/window", "the other series has only 7 values; the largest window that works is 7"),
        ({"pattern": [True, True] + [False] * 20}, "/params/window", "choose another stretch or column"),
        ({"pattern": ([True] * 6 + [False]) * 5}, "/params/window", "(the longest whole stretch is 6); the largest window that works is 6"),
        ({"against": ([True] * 6 + [False]) * 5}, "/params/window", "Every window of 8 values in the other series"),
        ({"pattern": [True] * 3, "window": 3}, "/params/window", "no window works; send a longer series"),
    ],
)  # fmt: skip
def test_what_is_refused_names_what_to_change(params, pointer, says):
    found = check(**params)
    assert only(found)[0] == pointer
    assert says in only(found)[1]
    assert found.warnings == []


def test_every_fault_is_told_at_once():
    found = check(pattern=[True] * 5, against=[True] * 4, p=0.0, k=0)
    assert [error.pointer for error in found.errors] == ["/params/p", "/params/k", "/params/window", "/params/window"]


@given(patterns, st.integers(1, 28), st.integers(1, 8))
def test_what_is_accepted_has_a_profile_and_what_is_refused_has_none(pattern, window, k):
    fine = window >= 3 and any(neighbours(pattern, window).values()) and k <= len(pattern) - window + 1
    assert bool(check(pattern, window=window, k=k).errors) is not fine


@given(patterns, patterns, st.integers(3, 28))
def test_a_join_needs_a_whole_window_on_each_side(pattern, other, window):
    fine = bool(whole_windows(pattern, window)) and bool(whole_windows(other, window))
    assert bool(check(pattern, other, window=window).errors) is not fine


@given(st.lists(st.booleans() | st.just(True), min_size=8, max_size=30))
def test_the_window_that_a_refusal_advises_is_accepted(pattern):
    for window in range(3, len(pattern) + 3):
        for error in check(pattern, window=window).errors:
            if "the largest window that works is " in error.detail:
                advised = int(error.detail.split("the largest window that works is ")[1].rstrip("."))
                assert not check(pattern, window=advised).errors
                assert check(pattern, window=advised + 1).errors


# ---- warnings ------------------------------------------------------------------------------------------------------


def test_lonely_windows_are_told():
    [warning] = check([True] * 12, window=8).warnings
    assert warning.startswith("1 window in the middle of the series")


def test_a_p_without_effect_is_told():
    [warning] = check(p=3.0).warnings
    assert "p = 3 has no effect" in warning


def test_a_series_joined_with_itself_is_told():
    params = MatrixProfileParams.model_validate({"series": {"values": []}, "against": {"values": []}, "window": 8})
    same = facts(GOOD, identity="same")
    [warning] = CHECKS["matrix_profile"](params, [same, same]).warnings
    assert "leave out `against`" in warning
    assert CHECKS["matrix_profile"](params, [same, facts(GOOD, identity="else")]).warnings == []
