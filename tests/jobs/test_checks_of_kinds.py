"""What each further kind refuses, with the pointer of what to change, and what it warns of."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.jobs.checks import CHECKS
from app.jobs.checks.facts import Findings, SeriesFacts, finite_runs
from app.jobs.checks.neighbours import has_pair
from app.jobs.series import _inline_gaps
from tests.jobs.test_checks import patterns, whole_windows
from workers.operations import OPERATIONS
from workers.sizes import largest_pan_window, pan_windows

GOOD = [True] * 40
GAPPY = ([True] * 6 + [False]) * 6
BAD = [False] * 40


def series(pattern, i=0, identity=None, constant=False, pointer=None) -> SeriesFacts:
    values = [1.0 if finite else math.nan for finite in pattern]
    runs = finite_runs(len(values), _inline_gaps(values))
    return SeriesFacts(f"series {i}", len(values), runs, identity, pointer or f"/params/series/{i}", constant)


def params_of(kind, **params):
    nothing = {"values": []}
    several = kind in ("multidimensional_profile", "consensus_motif")
    given = {name: [nothing] if several else nothing for name in OPERATIONS[kind].series if name != "against"}
    return OPERATIONS[kind].params.model_validate(
        {**given, **({} if kind == "pan_profile" else {"window": 8}), **params}
    )


def check(kind, *patterns, **params) -> Findings:
    given = [each if isinstance(each, SeriesFacts) else series(each, i) for i, each in enumerate(patterns)]
    return CHECKS[kind](params_of(kind, **params), given)


def test_every_kind_has_its_checks():
    assert set(CHECKS) == set(OPERATIONS)


def test_good_requests_have_nothing_to_say():
    nothing = Findings()
    assert check("multidimensional_profile", GOOD, GOOD) == check("multidimensional_profile", GOOD) == nothing
    assert check("multidimensional_profile", GOOD, GOOD, include=[1, 0], discords=True) == nothing
    assert check("mpdist", GOOD, [True] * 8) == check("mpdist", GOOD, GOOD, k=0, normalize=False, p=1.0) == nothing
    assert check("consensus_motif", GOOD, [True] * 8, GAPPY, window=5) == nothing
    assert check("pan_profile", GOOD) == check("pan_profile", GOOD, percentage=0.1, pre_scrump=True) == nothing
    assert check("pan_profile", [True] * 5) == check("pan_profile", GOOD, max_window=31, step=100) == nothing


MULTI, MPDIST, CONSENSUS, PAN = "multidimensional_profile", "mpdist", "consensus_motif", "pan_profile"


@pytest.mark.parametrize(
    ("kind", "given", "params", "pointer", "says"),
    [
        (MULTI, [GOOD, GOOD], {"window": 2}, "/params/window", "at least 3"),
        (MULTI, [GOOD, GOOD], {"window": 41}, "/params/window", "only 40 values; the largest window that works is 31"),
        (MULTI, [GOOD, GOOD], {"window": 40}, "/params/window", "exclusion zone of 10 samples; the largest window that works is 31"),
        (MULTI, [GOOD, GOOD[:-1]], {}, "/params/series/1", "series 1 has 39 values, but the first dimension has 40"),
        (MULTI, [GOOD, BAD], {}, "/params/series/1", "choose another stretch or column"),
        (MULTI, [GOOD, GAPPY[:40]], {}, "/params/series/1", "the largest window that works is 6"),
        (MULTI, [BAD, BAD], {}, "/params/window", "choose another stretch or column"),
        (MULTI, [[], GOOD], {}, "/params/series/0", "Series 0 is empty"),
        (MULTI, [GOOD, GOOD], {"include": []}, "/params/include", "`include` is empty"),
        (MULTI, [GOOD, GOOD], {"include": [0, 2]}, "/params/include/1", "names dimension 2, but dimensions are 0 to 1"),
        (MULTI, [GOOD, GOOD], {"include": [1, 1]}, "/params/include/1", "names dimension 1 twice"),
        (MULTI, [GOOD, GOOD], {"p": 0.5}, "/params/p", "at least 1"),
        (MPDIST, [GOOD, GOOD], {"percentage": 5.0}, "/params/percentage", "above 0 and at most 1; for 5 percent, send 0.05"),
        (MPDIST, [GOOD, GOOD], {"percentage": 0.0}, "/params/percentage", "must be above 0"),
        (MPDIST, [GOOD, GOOD], {"percentage": -0.1}, "/params/percentage", "must be above 0"),
        (MPDIST, [GOOD, GOOD], {"percentage": 1e6}, "/params/percentage", "at most 1."),
        (MPDIST, [GOOD, GOOD], {"k": -1}, "/params/k", "counted from 0"),
        (MPDIST, [GOOD, GOOD], {"k": 66}, "/params/k", "at most 65"),
        (MPDIST, [GOOD, [True] * 7], {}, "/params/window", "the largest window that works is 7"),
        (MPDIST, [GOOD, GAPPY], {}, "/params/window", "the largest window that works is 6"),
        (MPDIST, [GOOD, []], {}, "/params/series/1", "is empty"),
        (MPDIST, [GOOD, GOOD], {"window": 1}, "/params/window", "at least 3"),
        (CONSENSUS, [GOOD], {}, "/params/series", "there is one series; send two or more"),
        (CONSENSUS, [GOOD, [True] * 7], {}, "/params/series/1", "only 7 values; the largest window that works is 7"),
        (CONSENSUS, [GOOD, BAD], {}, "/params/series/1", "touches a missing or infinite one"),
        (CONSENSUS, [GOOD, GOOD], {"window": 41}, "/params/window", "the largest window that works is 40"),
        (CONSENSUS, [GOOD, GOOD], {"window": 0}, "/params/window", "at least 3"),
        (PAN, [GOOD], {"min_window": 2}, "/params/min_window", "at least 3"),
        (PAN, [GOOD], {"max_window": 2}, "/params/max_window", "must be at least min_window, 3"),
        (PAN, [GOOD], {"min_window": 10, "max_window": 9}, "/params/max_window", "must be at least min_window, 10"),
        (PAN, [GOOD], {"max_window": 32}, "/params/max_window", "the largest window that works is 31"),
        (PAN, [GOOD], {"min_window": 32}, "/params/min_window", "the largest window that works is 31"),
        (PAN, [GOOD], {"step": 0}, "/params/step", "at least 1"),
        (PAN, [GOOD], {"percentage": 5.0}, "/params/percentage", "for 5 percent, send 0.05"),
        (PAN, [GOOD], {"percentage": 0.0}, "/params/percentage", "must be above 0"),
        (PAN, [[True] * 4], {}, "/params/series/0", "5 is the least"),
        (PAN, [[]], {}, "/params/series/0", "5 is the least"),
        (PAN, [BAD], {}, "/params/min_window", "choose another stretch or column"),
        (PAN, [[True] * 3 + [False] * 20], {}, "/params/min_window", "no window works"),
    ],
)  # fmt: skip
def test_what_is_refused_names_what_to_change(kind, given, params, pointer, says):
    found = check(kind, *given, **params)
    [error] = found.errors
    assert error.pointer == pointer
    assert says in error.detail
    assert error.detail.endswith(".")
    assert found.warnings == []


def test_every_series_at_fault_is_told():
    found = check(CONSENSUS, [True] * 5, GOOD, BAD)
    assert [error.pointer for error in found.errors] == ["/params/series/0", "/params/series/2"]


@pytest.mark.parametrize(
    ("kind", "given", "params", "says"),
    [
        (MULTI, [GOOD, series(GOOD, 1, constant=True)], {}, "series 1 never changes"),
        (MULTI, [GOOD, series(GOOD, 1, constant=True)], {"discords": True}, "at distance 0."),
        (MULTI, [[True] * 20 + [False] * 20, [False] * 20 + [True] * 20], {}, "whole in all 2 dimensions at once"),
        (MPDIST, [GOOD, GOOD], {"k": 3, "percentage": 0.1}, "`percentage` has no effect"),
        (MPDIST, [[True] * 9 + [False] * 31, GOOD], {"k": 60}, "only 35 windows are free of missing values"),
        (CONSENSUS, [series(GOOD, 0, "same"), GOOD, series(GOOD, 2, "same")], {}, "series 2 is the same as series 0"),
        (PAN, [GOOD], {"pre_scrump": True}, "`pre_scrump` has no effect"),
        (PAN, [GAPPY], {}, "26 of 30 windows are longer than 6"),
        *((kind, [GOOD, GOOD], {"p": 3.0}, "p = 3 has no effect") for kind in (MULTI, MPDIST, CONSENSUS)),
        (PAN, [GOOD], {"p": 3.0}, "p = 3 has no effect"),
    ],
)
def test_what_is_worth_saying_is_said_and_runs(kind, given, params, says):
    found = check(kind, *given, **params)
    assert found.errors == []
    [warning] = found.warnings
    assert says in warning


@settings(deadline=None)
@given(st.integers(5, 3000))
def test_the_largest_pan_window_is_the_last_one_with_a_neighbour(length):
    whole = series([True] * length)
    assert has_pair(whole, largest_pan_window(length))
    assert not has_pair(whole, largest_pan_window(length) + 1)


@settings(deadline=None)
@given(patterns, st.integers(2, 30), st.none() | st.integers(2, 30), st.integers(1, 9))
def test_an_accepted_pan_profile_visits_just_what_was_asked_for(pattern, least, most, step):
    found = check(PAN, pattern, min_window=least, max_window=most, step=step)
    if found.errors:
        return
    visited = list(pan_windows(params_of(PAN, min_window=least, max_window=most, step=step), len(pattern)))
    assert visited == list(range(least, (most or largest_pan_window(len(pattern))) + 1, step))
    assert visited
    assert max(visited) <= largest_pan_window(len(pattern))
    assert has_pair(series(pattern), least)


@settings(deadline=None)
@given(st.lists(patterns, min_size=2, max_size=4), st.integers(2, 28))
def test_a_consensus_needs_a_whole_window_in_every_series(several, window):
    fine = window >= 3 and all(whole_windows(pattern, window) for pattern in several)
    assert bool(check(CONSENSUS, *several, window=window).errors) is not fine


@pytest.mark.parametrize("kind", [MULTI, MPDIST, CONSENSUS])
@settings(deadline=None)
@given(st.data())
def test_the_window_that_a_refusal_advises_is_accepted(kind, data):
    length = data.draw(st.integers(3, 26))
    given = [data.draw(st.lists(st.booleans() | st.just(True), min_size=length, max_size=length)) for _ in range(2)]
    for window in range(3, length + 3):
        for error in check(kind, *given, window=window).errors:
            if "the largest window that works is " in error.detail:
                advised = int(error.detail.split("the largest window that works is ")[1].rstrip("."))
                assert not check(kind, *given, window=advised).errors
                assert check(kind, *given, window=advised + 1).errors
