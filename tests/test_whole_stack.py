"""Answers that came the whole way, over HTTP, a Dask worker and a forked child, beside the brute force of `tests/oracle.py`."""

import numpy as np
import pytest

from tests import oracle
from tests.house import Api

RANDOM = np.random.default_rng(7)
WALK = RANDOM.standard_normal(160).cumsum()
OTHER = RANDOM.standard_normal(90).cumsum()


def changed(series: np.ndarray, *at: tuple[int | slice, float]) -> np.ndarray:
    copy = series.copy()
    for where, value in at:
        copy[where] = value
    return copy


SERIES = {
    "plain": WALK,
    "missing values": changed(WALK, (30, np.nan), (slice(70, 75), np.nan), (159, np.nan)),
    "infinities": changed(WALK, (0, np.inf), (50, -np.inf), (slice(100, 103), np.inf)),
    "constant windows": changed(WALK, (slice(20, 45), 3.0), (slice(90, 115), -7.0)),
    "offset 1e8": WALK + 1e8,
    "all of it": changed(WALK, (10, np.nan), (slice(20, 45), 3.0), (slice(90, 115), 3.0), (130, np.inf)) + 1e8,
}
KINDS = {
    "z-normalised": {},
    "p=1": {"normalize": False, "p": 1.0},
    "p=2": {"normalize": False, "p": 2.0},
    "p=3": {"normalize": False, "p": 3.0},
    "three neighbours": {"k": 3},
    "three neighbours, p=1": {"k": 3, "normalize": False, "p": 1.0},
}


def as_json(series: np.ndarray) -> dict[str, list[float | str | None]]:
    words = {np.inf: "inf", -np.inf: "-inf"}
    return {"values": [None if np.isnan(v) else words.get(v, float(v)) for v in series]}


def as_rows(found: list) -> np.ndarray:
    """A result's member as a float array (l, k), with NaN for null."""
    return np.array([row if isinstance(row, list) else [row] for row in found], dtype=float)


@pytest.mark.parametrize("against", [None, OTHER], ids=["self-join", "AB-join"])
@pytest.mark.parametrize("asked", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_the_profile_is_the_definitions(api: Api, series: np.ndarray, asked: dict, against: np.ndarray | None):
    window = 12
    if against is not None and series[60] > 1e7:
        against = against + 1e8
    joined = {} if against is None else {"against": as_json(against)}
    result = api.run(series=as_json(series), window=window, **joined, **asked)
    truth = oracle.matrix_profile(series, window, against=against, **asked)

    distances, indices = as_rows(result["distances"]), as_rows(result["indices"]).astype(int)
    expected = np.where(np.isfinite(truth.distances), truth.distances, np.nan)
    np.testing.assert_allclose(distances, expected, rtol=1e-7, atol=1e-6)
    assert ((indices == -1) == np.isnan(distances)).all()
    # Ties may be broken either way: what an index is worth is the distance it stands for.
    named = np.where(indices >= 0, truth.at(indices), np.nan)
    np.testing.assert_allclose(named, distances, rtol=1e-7, atol=1e-6)
    for side, nearest in (("left_indices", truth.left), ("right_indices", truth.right)):
        assert (np.isinf(nearest) == (np.array(result[side]) == -1)).all()


def test_a_fallback_is_told_by_the_plan_the_events_the_log_and_the_result(api: Api):
    body = {
        "kind": "matrix_profile",
        "params": {"series": as_json(WALK), "window": 12},
        "execution": {"backend": "cuda"},
    }
    job = api.submit(body, Prefer="wait=60")
    reason = job["plan"]["fallback"]["reason"]
    assert job["plan"]["backend"] == "cpu"
    assert not job["plan"]["acceleration_verified"]
    assert any(reason in str(event["data"]) for event in api.events(job["id"]) if event["type"] == "warning")
    log = api.get(job["links"]["logs"]).text
    assert f"cuda was asked for; running on cpu instead: {reason}" in log
    assert "149 windows of 12" in log
    provenance = api.get(job["links"]["result"]).json()["provenance"]
    assert (provenance["backend"], provenance["fallback"]) == ("cpu", {"wanted": "cuda", "reason": reason})
