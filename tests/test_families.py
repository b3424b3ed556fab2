"""Each of STUMPY's functions that Tidemill serves, the whole way over HTTP, beside the brute force of `tests/oracle.py`.

One server with both engines and Numba's CUDA simulator: ten functions on one worker, ten spread over Dask, the same ten over Ray, and the
eight GPU functions on the simulator. What runs where is in the plan and in the result.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.house import Api, BothEngines
from workers.operations import OPERATIONS
from workers.sizes import pan_windows

WINDOW = 8
RANDOM = np.random.default_rng(11)
POINTS = 44
"""The simulator has a thread of Python for each of a GPU's, so its time grows with the square of this, and it takes no more than 64."""
SERIES = [RANDOM.standard_normal(POINTS).cumsum() + offset for offset in (0.0, 1e6, -300.0)]
SERIES[1][20] = np.nan
P = 1.5

DISTANCES = {"z-normalised": {}, "p-norm": {"normalize": False, "p": P}}


def values(series: np.ndarray) -> dict[str, Any]:
    return {"values": [None if np.isnan(value) else float(value) for value in series]}


def floats(found: Any) -> np.ndarray:
    """A result's member with inf for null."""
    array = np.array(found, dtype=float)
    return np.where(np.isnan(array), np.inf, array)


@dataclass(frozen=True)
class Family:
    """One kind: what is asked, and what of its result is compared with what by the oracle."""

    params: dict[str, Any]
    found: Callable[[dict[str, Any]], np.ndarray]
    truth: Callable[[dict[str, Any]], np.ndarray]


def radius(asked: dict[str, Any]) -> np.ndarray:
    return np.array([min(radii.min() for radii in oracle.radii(SERIES, WINDOW, **asked))])


def radius_there(result: dict[str, Any]) -> np.ndarray:
    """The radius of the window that is named, which must be the radius that is claimed."""
    normalize = result["job"]["params"]["normalize"]
    there = oracle.radii(SERIES, WINDOW, **({} if normalize else DISTANCES["p-norm"]))[result["series"]]
    assert result["radius"] == pytest.approx(there[result["index"]], rel=1e-9)
    return np.array([result["radius"]])


def pan_truth(asked: dict[str, Any]) -> np.ndarray:
    rows = [oracle.matrix_profile(SERIES[0], m, **asked).distances[:, 0] for m in PAN_WINDOWS]
    return np.concatenate(rows)


PAN = {"series": values(SERIES[0]), "min_window": 5, "max_window": 9, "step": 2}
PAN_WINDOWS = [5, 7, 9]

FAMILIES = {
    "matrix_profile": Family(
        {"series": values(SERIES[1]), "window": WINDOW},
        lambda result: floats(result["distances"]),
        lambda asked: oracle.matrix_profile(SERIES[1], WINDOW, **asked).distances[:, 0],
    ),
    "multidimensional_profile": Family(
        {"series": [values(each) for each in SERIES], "window": WINDOW},
        lambda result: floats(result["distances"]),
        lambda asked: oracle.multidimensional_profile(SERIES, WINDOW, **asked).distances,
    ),
    "mpdist": Family(
        {"a": values(SERIES[0]), "b": values(SERIES[2]), "window": WINDOW, "percentage": 0.2},
        lambda result: np.array([result["distance"]]),
        lambda asked: np.array([oracle.mpdist(SERIES[0], SERIES[2], WINDOW, percentage=0.2, **asked)]),
    ),
    "consensus_motif": Family({"series": [values(each) for each in SERIES], "window": WINDOW}, radius_there, radius),
    "pan_profile": Family(
        PAN,
        lambda result: np.concatenate(
            [floats(row)[: POINTS - m + 1] for m, row in zip(PAN_WINDOWS, result["distances"], strict=True)]
        ),
        pan_truth,
    ),
}

CASES = [
    pytest.param(
        kind, backend, distance, id=f"{backend}-{operation.functions[backend].pick(distance == 'z-normalised')}"
    )
    for kind, operation in OPERATIONS.items()
    for backend in operation.functions
    for distance in DISTANCES
]


@pytest.fixture(scope="module")
def mill(both_engines: BothEngines) -> Iterator[Api]:
    """A server with two Dask workers, two Ray workers and the simulator."""
    with both_engines.whole() as api:
        yield api


@pytest.fixture(scope="module")
def result_of(mill: Api) -> Callable[[str, str, str], dict[str, Any]]:
    """`result_of(kind, backend, distance)`: each job is run once, and two tests look at what came of it."""
    return cache(partial(run, mill))


def run(api: Api, kind: str, backend: str, distance: str) -> dict[str, Any]:
    execution = {"backend": backend, "implementation": "stumpy", "fallback": "forbid"}
    params = {**FAMILIES[kind].params, **DISTANCES[distance]}
    job = api.submit({"kind": kind, "params": params, "execution": execution}, Prefer="wait=60")
    assert job["state"] == "succeeded", job
    return {**api.get(job["links"]["result"]).json(), "job": job}


@pytest.mark.parametrize(("kind", "backend", "distance"), CASES)
def test_every_function_gives_what_the_definition_says(result_of, kind, backend, distance):
    result = result_of(kind, backend, distance)
    function = OPERATIONS[kind].functions[backend].pick(distance == "z-normalised")
    plan, provenance, summary = result["job"]["plan"], result["provenance"], result["job"]["result"]

    np.testing.assert_allclose(
        FAMILIES[kind].found(result), FAMILIES[kind].truth(DISTANCES[distance]), rtol=1e-9, atol=1e-7
    )
    assert (plan["backend"], plan["function"], plan["fallback"]) == (backend, function, None)
    assert (provenance["backend"], provenance["function"]) == (backend, f"stumpy.{function}")
    assert plan["device"] == ("cuda-simulator" if backend == "cuda" else "cpu")
    assert plan["acceleration_verified"] is False
    assert summary["verification"]["rows_checked"] > 0
    assert summary["verification"]["max_abs_difference"] < 1e-6
    assert provenance["treatment"]
    if backend in ("dask", "ray"):
        assert sum(provenance["pieces_by_worker"].values()) == provenance["pieces"]
    if backend == "ray":
        assert any("experimental" in reason and "not used" in reason for reason in plan["reasons"])


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("kind", FAMILIES)
def test_where_a_job_runs_never_changes_its_answer(result_of, kind, distance):
    found = {backend: FAMILIES[kind].found(result_of(kind, backend, distance)) for backend in ("cpu", "dask", "ray")}
    for backend in ("dask", "ray"):
        np.testing.assert_allclose(found[backend], found["cpu"], rtol=0, atol=1e-8)


def test_the_table_has_all_28_functions():
    named = {
        pair.pick(normalize)
        for each in OPERATIONS.values()
        for pair in each.functions.values()
        for normalize in (True, False)
    }
    assert len(named) == 28


def test_on_the_simulator_nothing_is_called_available(mill):
    operations = {each["kind"]: each["backends"] for each in mill.get("/capabilities").json()["operations"]}
    assert {backends["cuda"]["available"] for backends in operations.values()} == {False}
    assert operations["mpdist"]["cuda"]["evidence"] == "simulated"
    assert operations["multidimensional_profile"]["cuda"]["evidence"] == "absent"
    assert all(operations[kind][backend]["available"] for kind in operations for backend in ("cpu", "dask", "ray"))


def test_there_is_no_multidimensional_profile_on_a_gpu(mill):
    body = {"kind": "multidimensional_profile", "params": FAMILIES["multidimensional_profile"].params}
    refused = mill.post("/jobs", json={**body, "execution": {"backend": "cuda", "fallback": "forbid"}})
    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/backend-unavailable"
    assert "GPU" in refused.json()["detail"]
    job = mill.submit({**body, "execution": {"backend": "cuda"}}, Prefer="wait=60")
    assert job["state"] == "succeeded"
    assert job["plan"]["fallback"]["wanted"] == "cuda"
    assert "GPU" in job["plan"]["fallback"]["reason"]
    assert job["plan"]["function"] == "mstump"
    assert any("GPU" in str(event["data"]) for event in mill.events(job["id"]) if event["type"] == "warning")
    assert mill.get(job["links"]["result"]).json()["provenance"]["fallback"] == job["plan"]["fallback"]


def test_what_the_simulator_cannot_take_runs_elsewhere_or_is_refused(mill):
    series = values(RANDOM.standard_normal(65))
    body = {"kind": "matrix_profile", "params": {"series": series, "window": WINDOW}}
    refused = mill.post("/jobs", json={**body, "execution": {"backend": "cuda", "fallback": "forbid"}})
    assert refused.status_code == 409
    assert "64" in refused.json()["detail"]
    job = mill.submit({**body, "execution": {"backend": "cuda"}}, Prefer="wait=60")
    assert (job["state"], job["plan"]["backend"], job["plan"]["device"]) == ("succeeded", "cpu", "cpu")


def test_pan_windows_are_those_that_were_asked_for():
    params = OPERATIONS["pan_profile"].params.model_validate(PAN)
    assert list(pan_windows(params, POINTS)) == PAN_WINDOWS
