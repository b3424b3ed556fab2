"""What STUMPY composes is composed of verified profiles, or there is no result."""

import importlib
import types

import numpy as np
import pytest
import stumpy

from tests import oracle
from tests.matrix_profile.hard import NOISE, OTHER, WALK
from workers.matrix_profile import across, multiverify, verify
from workers.matrix_profile import base as bases

JOBS = {
    "mpdist": ({"a": [WALK], "b": [OTHER]}, {"window": 10}),
    "consensus_motif": ({"series": [WALK, OTHER, NOISE]}, {"window": 10}),
    "pan_profile": ({"series": [WALK]}, {"min_window": 8, "max_window": 20, "step": 6}),
}
FUNCTIONS = {
    "mpdist": ("mpdist", "aampdist"),
    "consensus_motif": ("ostinato", "aamp_ostinato"),
    "pan_profile": ("stimp", "aamp_stimp"),
}
DISTANCES = [{}, {"normalize": False, "p": 1.0}]


class Pan:
    """A pan profile that computes nothing."""

    M_ = np.array([8, 14, 20])
    P_ = (np.zeros(143), np.zeros(137), np.zeros(131))

    def update(self) -> None: ...


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
@pytest.mark.parametrize("kind", JOBS)
def test_a_function_that_does_not_ask_for_verified_profiles_gives_no_result(compute, monkeypatch, kind, asked):
    name = FUNCTIONS[kind][bool(asked)]
    answers = {"mpdist": 0.0, "consensus_motif": (0.0, 0, 0), "pan_profile": Pan()}

    def bypassing(*arguments, **keywords):
        return answers[kind]

    bypassing.__module__ = f"stumpy.{name}"
    monkeypatch.setattr(stumpy, name, bypassing)
    series, params = JOBS[kind]
    with pytest.raises(bases.Bypassed, match=rf"{name} asked for 0 verified profiles"):
        compute(kind, series, **params, **asked)
    assert bases.Bypassed.slug == "internal"


@pytest.mark.parametrize("kind", JOBS)
def test_a_module_that_keeps_its_base_elsewhere_gives_no_result(compute, monkeypatch, kind):
    monkeypatch.delattr(importlib.import_module(f"stumpy.{FUNCTIONS[kind][0]}"), "stump")
    series, params = JOBS[kind]
    with pytest.raises(bases.Bypassed, match="has no stump"):
        compute(kind, series, **params)


@pytest.mark.parametrize("kind", JOBS)
def test_stumpys_modules_are_as_they_were_after_a_job(compute, kind):
    def state() -> dict[str, int]:
        homes = [importlib.import_module(f"stumpy.{name}") for pair in FUNCTIONS.values() for name in pair]
        return {f"{home.__name__}.{name}": id(value) for home in homes for name, value in vars(home).items()}

    before = state()
    series, params = JOBS[kind]
    compute(kind, series, **params)
    assert state() == before


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
@pytest.mark.parametrize("kind", JOBS)
def test_a_base_that_is_wrong_is_mended_before_it_is_used(compute, monkeypatch, kind, asked):
    """Every row claims to be a perfect match of the first window: no composed answer shows it."""
    name = "aamp" if asked else "stump"
    original = getattr(stumpy, name)

    def wrong(*arguments, **keywords):
        found = original(*arguments, **keywords)
        found[::2, 0], found[::2, 1] = 0.0, 0
        return found

    series, params = JOBS[kind]
    right = compute(kind, series, **params, **asked)
    monkeypatch.setattr(stumpy, name, wrong)
    mended = compute(kind, series, **params, **asked)
    for array, value in right.arrays.items():
        np.testing.assert_allclose(mended.arrays[array], value, atol=1e-9)
    assert mended.answer["summary"]["verification"]["rows_recomputed"] > 50
    assert any("rounding had spoilt" in warning for warning in mended.heard.warnings)


def test_the_search_for_a_consensus_takes_its_distances_from_the_definition(compute, monkeypatch):
    asked = []
    original = across.Across.distances

    def counting(self, a, row, b):
        asked.append((a, row, b))
        return original(self, a, row, b)

    monkeypatch.setattr(across.Across, "distances", counting)
    compute("consensus_motif", *JOBS["consensus_motif"][:1], **JOBS["consensus_motif"][1])
    assert len(asked) > 30


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
def test_a_claimed_consensus_that_is_none_fails(compute, monkeypatch, asked):
    name = FUNCTIONS["consensus_motif"][bool(asked)]
    original = getattr(stumpy, name)
    radii = oracle.radii([WALK, OTHER, NOISE], 10, **asked)
    far = int(radii[1].argmax())

    def claiming(radius: float):
        def claim(*arguments, **keywords):
            original(*arguments, **keywords)
            return radius, 1, far

        claim.__module__ = f"stumpy.{name}"
        return claim

    series, params = JOBS["consensus_motif"]
    monkeypatch.setattr(stumpy, name, claiming(0.5))
    with pytest.raises(verify.Unverifiable, match="the definition gives"):
        compute("consensus_motif", series, **params, **asked)
    scaled_by = 40 - 1 - int(np.frexp(np.abs(np.concatenate([WALK, OTHER, NOISE])).max())[1])
    exact = float(np.ldexp(radii[1][far], scaled_by if asked else 0))
    monkeypatch.setattr(stumpy, name, claiming(exact))
    with pytest.raises(verify.Unverifiable, match="less than"):
        compute("consensus_motif", series, **params, **asked)


def test_a_multidimensional_profile_wrong_throughout_fails_or_is_computed_anew(compute, monkeypatch):
    series = [WALK, WALK[::-1], NOISE]
    right = compute("multidimensional_profile", {"series": series}, window=10)

    def wrong(T, m, **keywords):
        rows = T.shape[1] - m + 1
        return types.SimpleNamespace(P_=np.zeros((3, rows)), I_=np.tile(np.arange(rows)[::-1], (3, 1)))

    monkeypatch.setattr(stumpy, "mstump", wrong)
    mended = compute("multidimensional_profile", {"series": series}, window=10)
    np.testing.assert_allclose(mended.arrays["distances"], right.arrays["distances"], atol=1e-9)
    assert mended.answer["summary"]["verification"]["rows_recomputed"] > 100
    monkeypatch.setattr(multiverify, "allowed_rows", lambda *sizes: 8)
    with pytest.raises(verify.Unverifiable, match=r"rounding spoilt the neighbours of \d+ of 141 windows"):
        compute("multidimensional_profile", {"series": series}, window=10)


def test_rows_wrong_in_a_consistent_way_are_noticed_in_a_multidimensional_profile(compute, monkeypatch):
    """Right distances of wrong neighbours."""

    def wrong(T, m, **keywords):
        rows = T.shape[1] - m + 1
        J = (np.arange(rows) + 60) % rows
        shapes = np.lib.stride_tricks.sliding_window_view(T, m, axis=1)
        shapes = (shapes - shapes.mean(axis=2, keepdims=True)) / shapes.std(axis=2, keepdims=True)
        apart = np.sort(np.sqrt(((shapes - shapes[:, J]) ** 2).sum(axis=2)), axis=0)
        return types.SimpleNamespace(P_=np.cumsum(apart, axis=0) / [[1], [2]], I_=np.tile(J, (2, 1)))

    monkeypatch.setattr(stumpy, "mstump", wrong)
    monkeypatch.setattr(multiverify, "allowed_rows", lambda *sizes: 8)
    with pytest.raises(verify.Unverifiable, match=r"are in doubt|differed from it"):
        compute("multidimensional_profile", {"series": [WALK, NOISE]}, window=10)


def test_unverifiable_has_a_page():
    problem = verify.Unverifiable("what was seen").problem()
    assert problem["type"] == "/problems/unverifiable"
    assert problem["status"] == 500
    assert multiverify.Unverifiable is verify.Unverifiable
