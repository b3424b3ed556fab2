"""What the tests of this folder ask of a cluster, and how they look at what came of it."""

import io
from functools import cache
from typing import Any

import numpy as np

from tests.cluster.cluster import workers_up
from tests.house import Api, long_series
from tests.test_families import FAMILIES, SERIES, values

COLUMNS = "abc"
WINDOW = 100
ALONE, SPREAD = 45_000, 250_000
"""Samples: of a profile that one thread, by STUMPY, or two workers, by tiles, compute for some ten seconds."""
LOOKED_AT = 12
"""Rows of a long profile that are compared with the definition."""
FINAL = ("succeeded", "failed", "cancelled")


def upload(api: Api, name: str, content: bytes) -> str:
    answer = api.post("/datasets", files={"file": (name, content)})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


def small_dataset(api: Api) -> str:
    """The series of `FAMILIES`, as columns."""
    rows = [["" if np.isnan(value) else repr(float(value)) for value in row] for row in zip(*SERIES, strict=True)]
    return upload(api, "small.csv", "\n".join(map(",".join, [list(COLUMNS), *rows, []])).encode())


def by_reference(params: Any, dataset: str) -> Any:
    """Parameters of `FAMILIES` with their values as columns of a dataset, which a worker has to fetch."""
    if isinstance(params, list):
        return [by_reference(each, dataset) for each in params]
    if not isinstance(params, dict):
        return params
    for name, series in zip(COLUMNS, SERIES, strict=True):
        if params == values(series):
            return {"dataset": dataset, "column": name}
    return {key: by_reference(value, dataset) for key, value in params.items()}


def kind_of(kind: str, dataset: str, backend: str) -> dict[str, Any]:
    execution = {"backend": backend, "fallback": "forbid"}
    return {"kind": kind, "params": by_reference(FAMILIES[kind].params, dataset), "execution": execution}


def long_profile(api: Api, n: int, **execution: str) -> str:
    """Begin a profile of `long_series(n)`; its id."""
    params = {"series": {"dataset": upload(api, f"walk-{n}.npy", long_series(n))}, "window": WINDOW}
    body = {"kind": "matrix_profile", "params": params, "execution": {**execution, "fallback": "forbid"}}
    return str(api.submit(body)["id"])


@cache
def true_rows(n: int) -> dict[int, float]:
    """Some distances of the profile of `long_series(n)`, straight from the definition."""
    walk = np.load(io.BytesIO(long_series(n)))
    shapes = np.lib.stride_tricks.sliding_window_view(walk, WINDOW).copy()
    shapes -= shapes.mean(axis=1, keepdims=True)
    shapes /= np.sqrt((shapes**2).sum(axis=1, keepdims=True))
    rows = {}
    for i in range(0, len(shapes), len(shapes) // LOOKED_AT):
        near = shapes @ shapes[i]
        near[max(0, i - WINDOW // 4) : i + WINDOW // 4 + 1] = -np.inf
        rows[i] = float(np.sqrt(WINDOW) * np.linalg.norm(shapes[near.argmax()] - shapes[i]))
    return rows


def ended_well(api: Api, job_id: str, seconds: float = 150) -> dict[str, Any]:
    """The job, once it has succeeded: it ended once, and no event of it is missing."""
    job = api.until(job_id, *FINAL, seconds=seconds)
    events = api.events(job_id)
    assert job["state"] == "succeeded", (job["error"], states(events), api.get(f"/jobs/{job_id}/logs").text[-4000:])
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [e["data"]["to"] for e in events if e["type"] == "state" and e["data"]["to"] in FINAL] == ["succeeded"]
    return job


def states(events: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """How a job went, for a test that fails."""
    return [(event["at"], event["data"]) for event in events if event["type"] in ("state", "warning")]


def is_right(api: Api, job: dict[str, Any], n: int) -> None:
    """Whether a long profile is what the definition says."""
    found = np.load(io.BytesIO(api.get(job["links"]["result"], headers={"Accept": "application/x-npz"}).content))
    truth = true_rows(n)
    assert len(found["distances"]) == n - WINDOW + 1
    np.testing.assert_allclose(found["distances"][list(truth)], list(truth.values()), rtol=0, atol=1e-7)


def workers_of(api: Api, job_id: str) -> list[list[str]]:
    """The workers of each attempt; a gang's are several."""
    started = [e["data"] for e in api.events(job_id) if e["type"] == "state" and e["data"]["to"] == "running"]
    return [data.get("workers") or [data["worker"]] for data in started]


def hosts_of(api: Api, job_id: str) -> list[str]:
    """The hosts of its last attempt's nodes, in their order."""
    hosts = {worker["id"]: worker["host"] for worker in workers_up(api)}
    return [hosts[worker] for worker in workers_of(api, job_id)[-1]]
