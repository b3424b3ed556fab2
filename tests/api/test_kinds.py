"""The kinds of job through the door: what each refuses and where, and how several series are named."""

import math

import pytest

from tests.api.asking import CSV, profile, refused, wave
from workers.operations import OPERATIONS

MULTI, MPDIST, CONSENSUS, PAN = "multidimensional_profile", "mpdist", "consensus_motif", "pan_profile"


def job(kind, **params):
    """A job request of this kind; `params` may name other series."""
    one, other = {"values": wave()}, {"values": [round(math.cos(i / 4), 3) for i in range(60)]}
    series = {MULTI: [one, other], CONSENSUS: [one, other], PAN: one}
    given = {"a": one, "b": other} if kind == MPDIST else {"series": series[kind]}
    window = {} if kind == PAN else {"window": 8}
    return {"kind": kind, "params": {**given, **window, **params}}


GAPS = {"values": [1.0, None, 2.0] * 20}
WRONG = {
    "one series has no consensus": (job(CONSENSUS, series=[{"values": wave()}]), "/params/series"),
    "no series at all": (job(CONSENSUS, series=[]), "/params/series"),
    "a series without a whole window": (job(CONSENSUS, series=[{"values": wave()}, GAPS]), "/params/series/1"),
    "a series too short": (job(CONSENSUS, series=[{"values": wave(5)}, {"values": wave()}]), "/params/series/0"),
    "a word in the second series": (job(CONSENSUS, series=[{"values": wave()}, {"values": ["x"]}]), "/params/series/1/values/0"),
    "an unknown dataset in a list": (job(CONSENSUS, series=[{"values": wave()}, {"dataset": "ds_none"}]), "/params/series/1/dataset"),
    "an unknown dataset of columns": (job(CONSENSUS, series={"dataset": "ds_none"}), "/params/series/dataset"),
    "dimensions of unequal length": (job(MULTI, series=[{"values": wave()}, {"values": wave(59)}]), "/params/series/1"),
    "a dimension that is not there": (job(MULTI, include=[2]), "/params/include/0"),
    "a dimension twice": (job(MULTI, include=[0, 0]), "/params/include/1"),
    "a negative dimension": (job(MULTI, include=[-1]), "/params/include/0"),
    "discords as a number": (job(MULTI, discords=1), "/params/discords"),
    "a window too long": (job(MULTI, window=61), "/params/window"),
    "a share that is a percentage": (job(MPDIST, percentage=5.0), "/params/percentage"),
    "no share": (job(MPDIST, percentage=0), "/params/percentage"),
    "a value that is not there": (job(MPDIST, k=106), "/params/k"),
    "a negative value": (job(MPDIST, k=-1), "/params/k"),
    "an empty series": (job(MPDIST, b={"values": []}), "/params/b"),
    "a parameter of another kind": (job(MPDIST, step=2), "/params/step"),
    "a list where one series is asked for": (job(MPDIST, a=[{"values": wave()}]), "/params/a"),
    "windows the wrong way round": (job(PAN, min_window=9, max_window=8), "/params/max_window"),
    "a window that STUMPY would clamp": (job(PAN, max_window=48), "/params/max_window"),
    "no step": (job(PAN, step=0), "/params/step"),
    "a step with a fraction": (job(PAN, step=1.5), "/params/step"),
    "a share above 1": (job(PAN, percentage=1.01), "/params/percentage"),
    "a window of a pan profile": (job(PAN, window=8), "/params/window"),
    **{f"p below 1 of {kind}": (job(kind, normalize=False, p=0.5), "/params/p") for kind in (MULTI, MPDIST, CONSENSUS, PAN)},
    **{f"p infinite of {kind}": (job(kind, normalize=False, p="inf"), "/params/p") for kind in (MULTI, MPDIST, CONSENSUS, PAN)},
    **{f"a short window of {kind}": (job(kind, window=2), "/params/window") for kind in (MULTI, MPDIST, CONSENSUS)},
    **{f"half a window of {kind}": (job(kind, window=8.5), "/params/window") for kind in (MULTI, MPDIST, CONSENSUS)},
    "a short window of a pan profile": (job(PAN, min_window=2), "/params/min_window"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "pointer"), WRONG.values(), ids=list(WRONG))
def test_each_fault_is_named_with_its_place(api, body, pointer):
    refused(api.post("/jobs", json=body), 422, "invalid-input", pointer)
    refused(api.post("/jobs/plan", json=body), 422, "invalid-input", pointer)
    batch = api.post("/jobs/batch", json={"jobs": [profile(), body]})
    refused(batch, 422, "invalid-input", f"/jobs/1{pointer}")


@pytest.mark.parametrize("kind", ["probe", "mtarix_profile", None, 5, ["mpdist"]])
def test_a_wrong_kind_is_refused_with_the_kinds_there_are(api, kind):
    for path in ("/jobs", "/jobs/plan"):
        document = refused(api.post(path, json={**profile(), "kind": kind}), 422, "invalid-input", "/kind")
        assert all(f"`{known}`" in document["detail"] for known in OPERATIONS)
        assert ("POST /capabilities/probes" in document["detail"]) == (kind == "probe")


def test_a_share_that_is_a_percentage_is_told_what_to_send(api):
    document = refused(api.post("/jobs", json=job(MPDIST, percentage=5.0)), 422, "invalid-input", "/params/percentage")
    assert "send 0.05" in document["detail"]


@pytest.mark.parametrize("kind", [MULTI, MPDIST, CONSENSUS, PAN])
@pytest.mark.parametrize("normalize", [True, False])
def test_each_kind_is_planned_with_its_function(api, kind, normalize):
    body, operation = job(kind, normalize=normalize) | {"execution": {"backend": "cpu"}}, OPERATIONS[kind]
    plan = api.post("/jobs/plan", json=body).json()
    assert plan["backend"] == "cpu"
    assert plan["implementation"] == ("tiles" if operation.tiles else "stumpy")
    assert plan["function"] == (
        operation.tiles.names[0] if operation.tiles else operation.functions["cpu"].pick(normalize)
    )
    body["execution"]["implementation"] = "stumpy"
    assert api.post("/jobs/plan", json=body).json()["function"] == operation.functions["cpu"].pick(normalize)
    assert plan["estimate"]["peak_bytes"] > 0
    assert all(reason.endswith(".") for reason in plan["reasons"])


def test_a_multidimensional_profile_has_no_gpu_function(api):
    body = job(MULTI) | {"execution": {"backend": "cuda"}}
    plan = api.post("/jobs/plan", json=body).json()
    assert plan["fallback"]["wanted"] == "cuda"
    assert "STUMPY has no GPU function" in plan["fallback"]["reason"]
    assert plan["acceleration_verified"] is False
    body["execution"]["fallback"] = "forbid"
    refused(api.post("/jobs", json=body), 409, "backend-unavailable", "/execution/backend")


def test_an_approximation_runs_on_cpu_alone(api):
    body = job(PAN, percentage=0.5) | {"execution": {"backend": "dask"}}
    assert "exact only" in api.post("/jobs/plan", json=body).json()["fallback"]["reason"]


def test_what_could_never_fit_is_refused_with_what_would(api):
    """A default pan profile of 100,000 points needs over a hundred GB."""
    body = job(PAN, series={"values": [1.0, 2.0, 4.0, 3.0] * 25_000})
    [error] = refused(api.post("/jobs/plan", json=body), 422, "invalid-input", "/params/step")["errors"]
    step = int(error["detail"].split("a step of at least ")[1].split()[0])
    body["params"]["step"] = step
    assert api.post("/jobs/plan", json=body).status_code == 200


# ---- several series --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def columns(api):
    """A dataset of a time, three numeric columns, the last of which never changes in rows 10 to 40, and a text."""
    rows = [
        f"2024-01-01T{i // 60:02d}:{i % 60:02d}:00,{math.sin(i):.3f},{math.cos(i / 3):.3f},{1.0 if 10 <= i < 40 else i},row {i}"
        for i in range(60)
    ]
    content = "\n".join(["time,x,y,z,note", *rows, ""]).encode()
    answer = api.post("/datasets?name=xyz.csv", content=content, headers={"content-type": CSV})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()["id"]


def planned(api, series, kind=MULTI, **params):
    return api.post("/jobs/plan", json=job(kind, series=series, **params))


def test_columns_of_a_dataset_are_series(api, columns):
    numeric = planned(api, {"dataset": columns})
    assert numeric.status_code == 200
    assert planned(api, {"dataset": columns}, include=[2]).status_code == 200
    refused(planned(api, {"dataset": columns}, include=[3]), 422, "invalid-input", "/params/include/0")
    for chosen in (["x", "y"], ["y", 3], [1]):
        assert planned(api, {"dataset": columns, "columns": chosen}).status_code == 200
    assert planned(api, {"dataset": columns, "columns": ["x", "z"]}, kind=CONSENSUS).status_code == 200


def test_faults_of_columns_have_their_place(api, columns):
    def told(pointer, **reference):
        refused(planned(api, {"dataset": columns, **reference}), 422, "invalid-input", f"/params/series/{pointer}")

    told("columns/1", columns=["x", "w"])
    told("columns/0", columns=["note"])
    told("columns/1", columns=["x", "time"])
    told("columns/2", columns=["x", "y", "x"])
    told("columns/0", columns=[17])
    told("start", start=60)
    told("stop", stop=61)
    told("columns", columns=[])
    one = planned(api, {"dataset": columns, "columns": ["x"]}, kind=CONSENSUS)
    refused(one, 422, "invalid-input", "/params/series")


def test_a_dead_channel_is_a_warning(api, columns):
    reference = {"dataset": columns, "start": 10, "stop": 40}
    [warning] = planned(api, reference).json()["warnings"]
    assert warning.startswith("column 'z' of 'xyz.csv' from row 10 to 40 never changes")
    assert planned(api, {**reference, "stop": 41}).json()["warnings"] == []
    flat = [{"values": wave()}, {"values": [5.0] * 59 + [None]}]
    [warning] = planned(api, flat).json()["warnings"]
    assert "series 1 never changes" in warning


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (CONSENSUS, lambda dataset: {"series": {"dataset": dataset}}),
        (CONSENSUS, lambda dataset: {"series": [{"values": wave()}, {"dataset": dataset, "column": "a"}]}),
        (MPDIST, lambda dataset: {"b": {"dataset": dataset, "column": "b"}}),
    ],
    ids=["columns", "in a list", "second"],
)
def test_a_dataset_is_needed_by_every_way_of_naming_it(api, both_busy, request, kind, named):
    """A dataset of a job that waits cannot be deleted, wherever in the request it stands."""
    rows = b"".join(b"%d,%d\n" % (i % 7, (i * i) % 11) for i in range(60))
    upload = {"name": "needed.csv", "missing": request.node.callspec.id}  # makes it a dataset of its own
    answer = api.post("/datasets", params=upload, content=b"a,b\n" + rows, headers={"content-type": CSV})
    dataset = answer.json()["id"]
    made = api.submit(job(kind, **named(dataset)) | {"execution": {"backend": "cpu"}})
    assert made["state"] == "queued"
    refused(api.delete(f"/datasets/{dataset}"), 409, "dataset-in-use")
    api.post(both_busy[0]["links"]["cancel"])
    assert api.job(made["id"], wait=30)["state"] == "succeeded"
    assert api.delete(f"/datasets/{dataset}").status_code == 204


def test_a_list_shows_the_beginning_of_every_series(api):
    made = api.submit(job(CONSENSUS), Prefer="wait=60")
    [listed] = [each for each in api.get(f"/jobs?kind={CONSENSUS}").json()["items"] if each["id"] == made["id"]]
    assert [each["values"] for each in listed["params"]["series"]] == [
        each["values"][:20] for each in made["params"]["series"]
    ]
    assert [each["values_total"] for each in listed["params"]["series"]] == [60, 60]
