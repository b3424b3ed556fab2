"""Jobs through the door: what is refused and where, what runs, and how it is stopped, tried again and deleted."""

import io
import json
import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from app.jobs import follow
from app.jobs.states import FINAL
from tests.api.asking import CSV, JSON, profile, refused, wave
from tests.house import eventually

# ---- what is refused ---------------------------------------------------------------------------------------------

WRONG = {
    "no window": ({"kind": "matrix_profile", "params": {"series": {"values": wave()}}}, "/params/window"),
    "window below 3": (profile(window=2), "/params/window"),
    "negative window": (profile(window=-5), "/params/window"),
    "window with a fraction": (profile(window=50.5), "/params/window"),
    "window as text": (profile(window="50"), "/params/window"),
    "window as a truth": (profile(window=True), "/params/window"),
    "window as null": (profile(window=None), "/params/window"),
    "window longer than the series": (profile(window=61), "/params/window"),
    "a window without bounds": (profile(window=10**30), "/params/window"),
    "no window without a gap": (profile([1.0, 2.0, None, 4.0] * 15), "/params/window"),
    "nothing finite": (profile([None, "inf", "-inf"] * 20), "/params/window"),
    "no series": ({"kind": "matrix_profile", "params": {"window": 8}}, "/params/series"),
    "an empty series": (profile([]), "/params/series"),
    "a series of words": (profile(["a"] * 60), "/params/series/values/0"),
    "a word among numbers": (profile([*wave(30), "nan", *wave(30)]), "/params/series/values/30"),
    "a truth among numbers": (profile([*wave(30), True, *wave(30)]), "/params/series/values/30"),
    "values and a dataset": (profile(series={"values": wave(), "dataset": "ds_x"}), "/params/series"),
    "neither values nor a dataset": (profile(series={}), "/params/series"),
    "values with a stretch": (profile(series={"values": wave(), "start": 3}), "/params/series"),
    "an unknown dataset": (profile(series={"dataset": "ds_none"}), "/params/series/dataset"),
    "an unknown other dataset": (profile(against={"dataset": "ds_none"}), "/params/against/dataset"),
    "an empty other series": (profile(against={"values": []}), "/params/against"),
    "another series too short": (profile(against={"values": wave(7)}), "/params/window"),
    "k of zero": (profile(k=0), "/params/k"),
    "k above the windows": (profile(k=54), "/params/k"),
    "k above the other's windows": (profile(k=14, against={"values": wave(20)}), "/params/k"),
    "k with a fraction": (profile(k=1.5), "/params/k"),
    "p below 1": (profile(normalize=False, p=0.5), "/params/p"),
    "p below 1, unused": (profile(p=0.99), "/params/p"),
    "p as words": (profile(normalize=False, p="inf"), "/params/p"),
    "p as a truth": (profile(p=True), "/params/p"),
    "p as null": (profile(p=None), "/params/p"),
    "normalize as a number": (profile(normalize=1), "/params/normalize"),
    "an unknown kind": (profile() | {"kind": "mtarix_profile"}, "/kind"),
    "no kind": ({"params": profile()["params"]}, "/kind"),
    "an unknown field": (profile() | {"prioritiy": 1}, "/prioritiy"),
    "an unknown parameter": (profile(windows=8), "/params/windows"),
    "an unknown choice": (profile() | {"execution": {"backends": "cpu"}}, "/execution/backends"),
    "an unknown backend": (profile() | {"execution": {"backend": "gpu"}}, "/execution/backend"),
    "an unknown implementation": (profile() | {"execution": {"implementation": "scamp"}}, "/execution/implementation"),
    "devices with cpu": (profile() | {"execution": {"backend": "cpu", "devices": "auto"}}, "/execution"),
    "devices with auto": (profile() | {"execution": {"devices": 1}}, "/execution"),
    "no devices of cuda": (profile() | {"execution": {"backend": "cuda", "devices": []}}, "/execution"),
    "a priority too high": (profile() | {"priority": 101}, "/priority"),
    "a priority too low": (profile() | {"priority": -101}, "/priority"),
    "a priority with a fraction": (profile() | {"priority": 0.5}, "/priority"),
    "no time": (profile() | {"timeout_seconds": 0}, "/timeout_seconds"),
    "time as text": (profile() | {"timeout_seconds": "10"}, "/timeout_seconds"),
    "time as a truth": (profile() | {"timeout_seconds": True}, "/timeout_seconds"),
    "no attempt": (profile() | {"max_attempts": 0}, "/max_attempts"),
    "a label that is a number": (profile() | {"labels": {"a": 1}}, "/labels/a"),
    "a label with a space": (profile() | {"labels": {"a b": "x"}}, "/labels/a b"),
    "a label too long": (profile() | {"labels": {"a": "x" * 256}}, "/labels/a"),
    "too many labels": (profile() | {"labels": {f"a{i}": "x" for i in range(65)}}, "/labels"),
    "labels that are a list": (profile() | {"labels": ["a"]}, "/labels"),
}


@pytest.mark.parametrize(("body", "pointers"), [(body, at) for body, *at in WRONG.values()], ids=list(WRONG))
def test_each_fault_is_named_with_its_place(api, body, pointers):
    refused(api.post("/jobs", json=body), 422, "invalid-input", *pointers)
    refused(api.post("/jobs/plan", json=body), 422, "invalid-input", *pointers)


@pytest.mark.parametrize("literal", ["1e999", "-1e999", "Infinity", "NaN"])
@pytest.mark.parametrize("member", ["p", "window", "k"])
def test_parameters_are_finite(api, member, literal):
    body = json.dumps(profile(normalize=False) | {}).replace('"window": 8', f'"window": 8, "{member}": {literal}')
    refused(api.post("/jobs", content=body, headers=JSON), 422, "invalid-input", f"/params/{member}")


def test_all_faults_are_told_at_once(api):
    body = profile(window=1, k=0, normalize=False, p=0.1) | {"kind": "matrix_profile"}
    refused(api.post("/jobs", json=body), 422, "invalid-input", "/params/window", "/params/k", "/params/p")
    body = profile(window="x", wind=1) | {"priority": 1000}
    pointers = ("/params/window", "/params/wind", "/priority")
    refused(api.post("/jobs", json=body), 422, "invalid-input", *pointers)


def test_a_whole_number_may_be_written_with_a_point(api):
    body = json.dumps(profile()).replace('"window": 8', '"window": 8.0')
    answer = api.post("/jobs", content=body, headers=JSON)
    assert answer.status_code == 202
    assert answer.json()["params"]["window"] == 8


def test_values_have_a_limit(api):
    accepted = api.post("/jobs/plan", json=profile([1.0, 2.0, 4.0, 3.0] * 25_000, window=50))
    assert accepted.status_code == 200
    refused(api.post("/jobs/plan", json=profile([1.0] * 100_001)), 422, "invalid-input", "/params/series/values")


def test_columns_and_rows_are_checked(api, dated):
    def asked(**reference):
        return api.post("/jobs/plan", json=profile(series={"dataset": dated["id"], **reference}))

    assert asked().status_code == 200
    assert asked(column="celsius", start=0, stop=None).status_code == 200
    assert asked(column=1, start=5, stop=28).status_code == 200
    for wrong in ("fahrenheit", "note", "date", 0, 2, 17):
        refused(asked(column=wrong), 422, "invalid-input", "/params/series/column")
    for wrong in (-1, 1.5, "x", True):
        refused(asked(start=wrong), 422, "invalid-input", "/params/series/start")
    refused(asked(start=28), 422, "invalid-input", "/params/series/start")
    refused(asked(start=10, stop=5), 422, "invalid-input", "/params/series/start")
    refused(asked(stop=29), 422, "invalid-input", "/params/series/stop")
    refused(asked(column=-1), 422, "invalid-input", "/params/series/column")
    refused(asked(start=20), 422, "invalid-input", "/params/window")  # eight values: one window, and no other


def test_a_column_must_be_named_among_several(api):
    two = b"a,b\n" + b"".join(b"%d,%d\n" % (i % 7, i % 5) for i in range(40))
    dataset = api.post("/datasets?name=two.csv", content=two, headers={"content-type": CSV}).json()["id"]
    answer = api.post("/jobs", json=profile(series={"dataset": dataset}))
    assert "'a', 'b'" in refused(answer, 422, "invalid-input", "/params/series/column")["detail"]
    assert api.post("/jobs/plan", json=profile(series={"dataset": dataset, "column": "b"})).status_code == 200


@pytest.mark.parametrize("length", [10, 23, 60, 100])
def test_the_largest_window_that_works_is_named_and_works(api, length):
    answer = api.post("/jobs", json=profile(wave(length), window=length))
    document = refused(answer, 422, "invalid-input", "/params/window")
    largest = int(document["detail"].rstrip(".").split()[-1])
    job = api.submit(profile(wave(length), window=largest), Prefer="wait=60")
    assert job["state"] == "succeeded"
    assert job["result"]["motif"] is not None
    refused(api.post("/jobs", json=profile(wave(length), window=largest + 1)), 422, "invalid-input", "/params/window")


def test_a_series_too_short_for_any_window(api):
    refused(api.post("/jobs", json=profile(wave(4), window=3)), 422, "invalid-input", "/params/window")


def test_whatever_advice_is_given_can_be_followed(api):
    """A message that says which window to send must name one that is accepted."""
    for body in (profile(window=61), profile([*wave(20), None] * 3, window=21), profile(wave(20), window=25)):
        detail = refused(api.post("/jobs", json=body), 422, "invalid-input", "/params/window")["detail"]
        advised = int("".join(c if c.isdigit() else " " for c in detail).split()[-1])
        body["params"]["window"] = advised
        assert api.post("/jobs/plan", json=body).status_code == 200, (detail, advised)


def test_lonely_windows_are_counted_in_a_warning(api):
    values, window = wave(60), 40
    job = api.submit(profile(values, window=window), Prefer="wait=60")
    assert job["state"] == "succeeded"
    distances = api.get(job["links"]["result"]).json()["distances"]
    lonely = sum(all(abs(i - j) <= math.ceil(window / 4) for j in range(len(distances))) for i in range(len(distances)))
    assert lonely > 0
    assert distances.count(None) == lonely
    warnings = [event["data"]["message"] for event in api.events(job["id"]) if event["type"] == "warning"]
    assert all(str(lonely) in warning.split() for warning in warnings)
    assert job["plan"]["warnings"] == warnings[:1]


# ---- what runs ---------------------------------------------------------------------------------------------------


def test_an_ab_join_of_a_series_with_itself_is_zeros_with_a_warning(api):
    result = api.run(series={"values": wave()}, against={"values": wave()}, window=8)
    assert result["distances"] == pytest.approx([0.0] * 53, abs=1e-6)
    assert result["indices"] == list(range(53))
    assert any("itself" in warning for warning in result["job"]["plan"]["warnings"])
    assert any(event["type"] == "warning" for event in api.events(result["job"]["id"]))


def test_missing_values_have_no_neighbour(api):
    values = wave()
    values[20] = None
    result = api.run(series={"values": values}, window=8)
    assert [i for i, distance in enumerate(result["distances"]) if distance is None] == list(range(13, 21))
    for name in ("indices", "left_indices", "right_indices"):
        assert {result[name][i] for i in range(13, 21)} == {-1}
        assert len(result[name]) == 53


def norm(values, window, p):
    """Each window's smallest p-norm distance outside the exclusion zone, from the definition."""
    windows = np.lib.stride_tricks.sliding_window_view(np.array(values), window)
    table = (np.abs(windows[:, None] - windows[None]) ** p).sum(axis=2) ** (1 / p)
    near = np.abs(np.subtract.outer(np.arange(len(windows)), np.arange(len(windows)))) <= math.ceil(window / 4)
    table[near] = np.inf
    return table.min(axis=1)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_p_norms(api, p):
    result = api.run(series={"values": wave()}, window=8, normalize=False, p=p)
    assert result["distances"] == pytest.approx(norm(wave(), 8, p), rel=1e-9, abs=1e-9)
    assert result["job"]["plan"]["function"] == ("tiles.self_join" if p == 2 else "aamp")


def test_a_p_without_effect_is_a_warning(api):
    plan = api.post("/jobs/plan", json=profile(p=3.0)).json()
    assert plan["function"] == "tiles.self_join"
    assert any("normalize" in warning for warning in plan["warnings"])


def test_three_neighbours(api):
    result = api.run(series={"values": wave()}, window=8, k=3)
    assert all(len(entry) == 3 for name in ("distances", "indices") for entry in result[name])
    assert all(entry == sorted(entry) for entry in result["distances"])
    one = api.run(series={"values": wave()}, window=8)
    assert [entry[0] for entry in result["distances"]] == pytest.approx(one["distances"], abs=1e-6)


def test_a_stretch_of_a_dataset(api):
    values = np.cumsum(np.random.default_rng(3).standard_normal(300))
    file = io.BytesIO()
    np.save(file, values)
    dataset = api.post(
        "/datasets?name=walk.npy", content=file.getvalue(), headers={"content-type": "application/x-npy"}
    ).json()
    part = api.run(series={"dataset": dataset["id"], "start": 50, "stop": 200}, window=20)
    inline = api.run(series={"values": list(values[50:200])}, window=20)
    assert part["distances"] == pytest.approx(inline["distances"], abs=1e-9)
    assert part["indices"] == inline["indices"]


# ---- planning and backends ---------------------------------------------------------------------------------------


def test_a_plan_starts_nothing(api):
    before = api.get("/jobs?limit=1").json()["items"]
    answer = api.post("/jobs/plan", json=profile() | {"labels": {"planned": "only"}})
    assert answer.status_code == 200
    plan = answer.json()
    assert plan["backend"] == "cpu"
    assert plan["fallback"] is None
    assert plan["estimate"]["seconds"] > 0
    assert plan["estimate"]["peak_bytes"] > 0
    assert api.get("/jobs?label=planned:only").json()["items"] == []
    after = api.get("/jobs?limit=1").json()["items"]
    assert [job["id"] for job in after] == [job["id"] for job in before]


@pytest.mark.parametrize("backend", ["cuda", "ray", "dask"])
def test_a_backend_that_is_not_there_is_stood_in_for_or_refused(api, backend):
    operations = {each["kind"]: each for each in api.get("/capabilities").json()["operations"]}
    operation = operations["matrix_profile"]
    if operation["backends"][backend]["available"]:
        pytest.skip(f"{backend} is there")
    reason = operation["backends"][backend]["reason"]
    forbidden = profile() | {"execution": {"backend": backend, "fallback": "forbid"}}
    for path in ("/jobs", "/jobs/plan"):
        document = refused(api.post(path, json=forbidden), 409, "backend-unavailable", "/execution/backend")
        assert reason in document["detail"]
    batch = api.post("/jobs/batch", json={"jobs": [profile(), forbidden]})
    refused(batch, 409, "backend-unavailable", "/jobs/1/execution/backend")
    allowed = profile() | {"execution": {"backend": backend}}
    wanted = {"wanted": backend, "reason": reason}
    assert api.post("/jobs/plan", json=allowed).json()["fallback"] == wanted
    job = api.submit(allowed, Prefer="wait=60")
    assert job["state"] == "succeeded"
    assert job["plan"]["fallback"] == wanted
    assert job["plan"]["backend"] == "cpu"
    (warning,) = [event["data"] for event in api.events(job["id"]) if event["type"] == "warning"]
    assert warning["wanted"] == backend
    assert reason in warning["message"]


def test_devices_go_with_cuda(api):
    for devices in ("auto", 1, [0], [0, 1]):
        body = profile() | {"execution": {"backend": "cuda", "devices": devices}}
        assert api.post("/jobs/plan", json=body).status_code == 200
    for devices in ("all", 0, [-1], 1.5, ["0"]):
        body = profile() | {"execution": {"backend": "cuda", "devices": devices}}
        assert api.post("/jobs/plan", json=body).status_code == 422


# ---- batches -----------------------------------------------------------------------------------------------------


def test_a_batch_is_all_or_nothing(api):
    mark = {"labels": {"batch": "nothing"}}
    jobs = [profile() | mark, profile(window=1) | mark, profile() | mark]
    refused(api.post("/jobs/batch", json={"jobs": jobs}), 422, "invalid-input", "/jobs/1/params/window")
    jobs[2] = profile(window=10, k=1000) | mark
    wrong = api.post("/jobs/batch", json={"jobs": jobs})
    refused(wrong, 422, "invalid-input", "/jobs/1/params/window", "/jobs/2/params/k")
    jobs[0] = {"kind": "matrix_profile"}
    refused(api.post("/jobs/batch", json={"jobs": jobs}), 422, "invalid-input", "/jobs/0/params")
    assert api.get("/jobs?label=batch:nothing").json()["items"] == []


@pytest.mark.parametrize("jobs", [[], [profile([1, 2, 3], window=3)] * 1001, None, {}])
def test_a_batch_has_a_size(api, jobs):
    refused(api.post("/jobs/batch", json={"jobs": jobs}), 422, "invalid-input", "/jobs")


def test_wrong_values_by_the_million_hold_nobody_up(house, api):
    """Each would be an error of its own; collected, they took gigabytes and a minute in which nobody else was answered."""
    batch = json.dumps({"jobs": [profile(["x"] * 100_000) for _ in range(15)]})
    slowest, done = 0.0, threading.Event()

    def others():
        nonlocal slowest
        with house.api() as other:
            while not done.is_set():
                began = time.monotonic()
                other.get("/health/live")
                slowest = max(slowest, time.monotonic() - began)

    watching = threading.Thread(target=others)
    watching.start()
    began = time.monotonic()
    answer = api.post("/jobs/batch", content=batch, headers=JSON)
    took = time.monotonic() - began
    done.set()
    watching.join()
    refused(answer, 422, "invalid-input", "/jobs/0/params/series/values/0")
    print(f"answered within {took:.2f} s, others within {slowest:.2f} s")
    assert took < 5
    assert slowest < 3


def test_members_by_the_thousand_are_refused(api):
    refused(api.post("/jobs", json=profile() | {f"m{i}": 1 for i in range(300_000)}), 422, "invalid-input", "")


def test_misplaced_and_misspelt_members_are_told_where_they_belong(api):
    [misplaced] = refused(api.post("/jobs", json=profile() | {"backend": "cpu"}), 422, "invalid-input")["errors"]
    assert misplaced == {"pointer": "/backend", "detail": "`backend` belongs in `execution`."}
    [misspelt] = refused(api.post("/jobs", json=profile(windw=8)), 422, "invalid-input")["errors"]
    assert misspelt["pointer"] == "/params/windw"
    assert "did you mean `window`?" in misspelt["detail"]
    [bare] = refused(api.post("/jobs", json=profile(series=[1, 2])), 422, "invalid-input")["errors"]
    assert '{"dataset": "ds_…"}' in bare["detail"]
    [empty] = refused(api.post("/jobs"), 422, "invalid-input")["errors"]
    assert empty["detail"].startswith("The body is empty; send a JSON object with `")


def test_a_list_shows_the_beginning_of_what_was_sent(api):
    job = api.submit(profile(wave(120)))
    [listed] = [each for each in api.get("/jobs").json()["items"] if each["id"] == job["id"]]
    assert listed["params"]["series"] == job["params"]["series"] | {"values": wave(120)[:20], "values_total": 120}
    assert api.job(job["id"])["params"]["series"]["values"] == wave(120)
    assert listed["params"]["window"] == 8


def test_a_thousand_jobs_at_once(api, both_busy):
    mark = {"labels": {"batch": "thousand"}, "priority": -100}
    answer = api.post("/jobs/batch", json={"jobs": [profile(wave(20), window=3) | mark] * 1000})
    assert answer.status_code == 202
    assert answer.elapsed.total_seconds() < 15
    ids = [job["id"] for job in answer.json()["jobs"]]
    assert len(set(ids)) == 1000
    seen, path = [], "/jobs?label=batch:thousand&limit=200"
    while path:
        page = api.get(path)
        seen += [job["id"] for job in page.json()["items"]]
        path = page.links["next"]["url"] if "link" in page.headers else None
    assert seen == ids[::-1]
    with ThreadPoolExecutor(16) as threads:
        ends = threads.map(lambda job_id: api.post(f"/jobs/{job_id}/cancel").json()["state"], ids)
        assert set(ends) == {"cancelled"}


# ---- stopping, trying again, deleting ----------------------------------------------------------------------------


def test_cancelling_a_queued_job(api, both_busy):
    job = api.submit(profile())
    cancelled = api.post(job["links"]["cancel"])
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    again = api.post(job["links"]["cancel"])
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")
    final = api.job(job["id"])
    assert final["finished_at"]
    assert final["started_at"] is None
    assert final["error"] is None
    assert final["result"] is None


def test_cancelling_a_running_job_is_quick_and_leaves_the_worker_alive(house, api, long_job):
    pids = {worker.pid for worker in house.workers()}
    job = api.until(long_job()["id"], "running")
    eventually(lambda: api.job(job["id"])["phase"] == "computing")
    began = time.monotonic()
    answer = api.post(job["links"]["cancel"])
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")
    assert api.post(job["links"]["cancel"]).status_code in (200, 202)
    final = api.until(job["id"], *FINAL)
    assert final["state"] == "cancelled"
    assert time.monotonic() - began < 5
    assert {worker.pid for worker in house.workers()} == pids
    both = [api.submit(profile()) for _ in pids]
    assert {api.job(each["id"], wait=30)["state"] for each in both} == {"succeeded"}


def test_a_job_that_has_ended_cannot_be_cancelled(api, finished):
    refused(api.post(finished["links"]["cancel"]), 409, "job-is-final")
    assert api.job(finished["id"]) == finished


def test_trying_again_makes_a_new_job_of_the_same_body(api, both_busy):
    body = {
        **profile([*wave(50), None, "inf", *wave(50)], window=9, k=2, normalize=False, p=1.5),
        "execution": {"backend": "ray"},
        "priority": 7,
        "timeout_seconds": 100.5,
        "max_attempts": 2,
        "labels": {"again": "yes"},
    }
    first = api.submit(body)
    refused(api.post(f"/jobs/{first['id']}/retry"), 409, "not-retryable")
    api.post(first["links"]["cancel"])
    answer = api.post(f"/jobs/{first['id']}/retry")
    assert answer.status_code == 202
    second = answer.json()
    assert answer.headers["location"] == f"/jobs/{second['id']}"
    assert second["retry_of"] == first["id"]
    assert second["id"] != first["id"]
    same = ("kind", "params", "execution", "priority", "timeout_seconds", "max_attempts", "labels")
    assert {name: second[name] for name in same} == {name: first[name] for name in same}
    assert api.job(first["id"])["state"] == "cancelled"
    api.post(both_busy[0]["links"]["cancel"])
    assert api.job(second["id"], wait=30)["state"] == "succeeded"
    refused(api.post(f"/jobs/{second['id']}/retry"), 409, "not-retryable")


def test_deleting_a_job_takes_its_files_along(house, api, both_busy):
    refused(api.delete(f"/jobs/{both_busy[0]['id']}"), 409, "job-not-final")
    queued = api.submit(profile())
    refused(api.delete(f"/jobs/{queued['id']}"), 409, "job-not-final")
    api.post(both_busy[0]["links"]["cancel"])
    assert api.job(queued["id"], wait=30)["state"] == "succeeded"
    folder = house.home / "jobs" / queued["id"]
    assert folder.is_dir()
    assert api.delete(f"/jobs/{queued['id']}").status_code == 204
    for link in ("self", "events", "result", "artifacts", "logs"):
        refused(api.get(queued["links"][link]), 404, "not-found")
    refused(api.delete(f"/jobs/{queued['id']}"), 404, "not-found")
    assert not folder.exists()
    assert queued["id"] not in [job["id"] for job in api.get("/jobs").json()["items"]]


def test_explain(api, both_busy, finished):
    queued = [api.submit(profile() | {"priority": priority}) for priority in (1, 5)]

    def explained(job):
        answer = api.get(f"/jobs/{job['id']}/explain")
        assert answer.status_code == 200
        return answer.json()

    low, high = (explained(job) for job in queued)
    assert (low["state"], low["jobs_ahead"], high["jobs_ahead"]) == ("queued", 1, 0)
    assert len(low["workers"]) == 2
    assert low["rules"]
    assert "every worker is taken" in high["summary"]
    assert "1 job" in low["summary"]
    running = explained(both_busy[0])
    assert (running["state"], running["jobs_ahead"]) == ("running", 0)
    assert running["workers"][0]["id"].split("_")[0] in running["summary"]
    assert explained(finished)["state"] == "succeeded"
    for job in queued:
        api.post(job["links"]["cancel"])
        assert "never ran" in explained(job)["summary"]


def test_time_runs_out(api, long_job):
    job = long_job(timeout_seconds=1.5)
    final = api.job(job["id"], wait=30)
    assert final["state"] == "failed"
    assert final["error"]["type"] == "/problems/timeout"
    assert {"type", "title", "status", "detail", "instance"} <= set(final["error"])
    assert api.get(final["error"]["type"]).status_code == 200
    assert final["result"] is None
    refused(api.get(job["links"]["result"]), 409, "not-ready")
    both = [api.submit(profile()) for _ in range(2)]
    assert {api.job(each["id"], wait=30)["state"] for each in both} == {"succeeded"}
    eventually(lambda: all(w["free"]["CPU"] >= 1 for w in api.get(f"/jobs/{job['id']}/explain").json()["workers"]), 10)
    retried = api.post(f"/jobs/{job['id']}/retry").json()
    assert retried["timeout_seconds"] == 1.5
    api.post(f"/jobs/{retried['id']}/cancel")


def test_a_failure_shows_no_stack_trace(api):
    job = api.submit(profile([value * 1e300 for value in wave()], normalize=False), Prefer="wait=60")
    assert job["state"] == "failed"
    assert job["error"]["type"] == "/problems/invalid-input"
    for link in ("self", "events", "logs"):
        assert "Traceback" not in api.get(job["links"][link]).text, link


def test_a_log_is_a_plain_file(api, house, tmp_path):
    """What a job left in its place may lead to what it was never to see, or be a pipe that nobody writes to."""
    finished = api.submit(profile(), Prefer="wait=60")
    attempt, secret = house.home / "jobs" / finished["id"] / "1", tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "rank-3.log").write_text("secret")
    (attempt / "rank-1.log").symlink_to(secret)
    os.mkfifo(attempt / "rank-2.log")
    (attempt.parent / "2").symlink_to(tmp_path / "folder")
    (attempt / "rank-4.log").write_text("plain")
    for rank in (1, 2, 3):
        refused(api.get(f"{finished['links']['self']}/logs?rank={rank}"), 404, "not-found")
    assert api.get(f"{finished['links']['self']}/logs?rank=4").text == "plain"
    # It may have been listed before it became something else.
    for path in (attempt / "rank-1.log", attempt / "rank-2.log", attempt.parent / "2" / "rank-3.log", attempt / "none"):
        assert follow._read(path, 0) == b""
    (attempt.parent / "2").unlink()


def test_a_failed_job_can_be_deleted(api, long_job):
    job = api.job(long_job(timeout_seconds=0.5)["id"], wait=30)
    assert job["state"] == "failed"
    assert api.delete(f"/jobs/{job['id']}").status_code == 204


def test_higher_priorities_run_first(api, both_busy):
    jobs = {priority: api.submit(profile() | {"priority": priority}) for priority in (-3, 0, 50, 7)}
    api.post(both_busy[0]["links"]["cancel"])
    ended = {priority: api.job(job["id"], wait=30) for priority, job in jobs.items()}
    assert {job["state"] for job in ended.values()} == {"succeeded"}
    assert sorted(ended, key=lambda priority: ended[priority]["started_at"]) == [50, 7, 0, -3]
