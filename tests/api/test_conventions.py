"""The conventions which every address keeps: problems, idempotency, lists, versions, waiting, streams."""

import base64
import itertools
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import httpx_sse
import pytest

from app.jobs.states import FINAL
from tests.api.asking import JSON, profile, refused, table, wave
from workers.contract import PROTOCOL, VERSION

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

# ---- who asks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/health/live", "/jobs", "/docs", "/nothing"])
def test_a_name_that_is_not_this_servers_is_refused(api, path):
    refused(api.get(path, headers={"Host": "evil.example"}), 421, "host-not-allowed")
    assert api.get(path, headers={"Host": "localhost:1"}).status_code in (200, 404)


def test_the_workers_door_takes_more_than_people_may_send(api):
    body = b" " * (17 << 20) + b"{}"
    refused(api.post("/jobs", content=body, headers=JSON), 413, "payload-too-large")
    spoken = {**JSON, PROTOCOL: VERSION}
    refused(api.post("/internal/workers/w/report", content=body, headers=spoken), 422, "invalid-input")


def test_pages_of_others_change_nothing(api):
    body = profile()
    refused(api.post("/jobs", json=body, headers={"Origin": "http://evil.example"}), 403, "origin-not-allowed")
    assert api.post("/jobs", json=body, headers={"Origin": str(api.base_url).rstrip("/")}).status_code == 202


@pytest.mark.parametrize(
    ("method", "path", "unknown", "near"),
    [
        ("GET", "/jobs", "stat", "state"),
        ("POST", "/datasets", "delimeter", "delimiter"),
        ("GET", "/jobs/job_x/plot", "widht", "width"),
    ],
)
def test_a_misspelt_query_parameter_is_not_passed_over(api, method, path, unknown, near):
    fault = refused(api.request(method, f"{path}?{unknown}=1"), 422, "invalid-input", f"/query/{unknown}")
    assert f"did you mean `{near}`?" in fault["detail"]


# ---- values ------------------------------------------------------------------------------------------------------


def test_a_job_has_every_member_the_contract_shows(finished):
    assert {
        *("id", "kind", "state", "phase", "progress", "params", "execution", "plan", "priority", "labels"),
        *("attempt", "max_attempts", "created_at", "started_at", "finished_at", "error", "result", "links"),
    } <= set(finished)
    assert set(finished["progress"]) == {"fraction", "done", "total", "unit", "eta_seconds"}
    assert {
        *("backend", "implementation", "function", "device", "workers", "fallback", "acceleration_verified", "estimate")
    } <= set(finished["plan"])
    assert set(finished["plan"]["estimate"]) == {"seconds", "peak_bytes", "actual_seconds", "ratio"}
    assert {"self", "events", "logs", "result", "cancel"} <= set(finished["links"])
    assert {"motif", "discord", "verification"} <= set(finished["result"])


def test_times_are_utc_and_ids_say_what_they_are(api, finished, dated):
    assert all(TIME.fullmatch(finished[name]) for name in ("created_at", "started_at", "finished_at"))
    assert finished["created_at"] <= finished["started_at"] <= finished["finished_at"]
    assert finished["id"].startswith("job_")
    assert dated["id"].startswith("ds_")
    assert TIME.fullmatch(dated["created_at"])


def test_every_link_of_a_job_leads_somewhere(api, finished):
    for name, link in finished["links"].items():
        answer = api.post(link) if name == "cancel" else api.get(link)
        assert answer.status_code == (409 if name == "cancel" else 200), name


def strict(text):
    """JSON as the standard has it: NaN and Infinity are none."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in {text[:200]}"))


def test_non_finite_numbers_go_in_as_words_and_never_come_out(api):
    values = [*wave(40), None, "inf", "-inf", *wave(40)]
    job = api.submit(profile(values), Prefer="wait=60")
    assert job["state"] == "succeeded"
    assert strict(api.get(job["links"]["self"]).text)["params"]["series"]["values"][40:43] == [None, "inf", "-inf"]
    result = strict(api.get(job["links"]["result"]).text)
    touching = range(40 - 8 + 1, 43)
    assert [result["distances"][i] for i in touching] == [None] * len(touching)
    assert [result["indices"][i] for i in touching] == [-1] * len(touching)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_literals_that_json_does_not_have_are_refused_where_they_stand(api, literal):
    body = json.dumps(profile([*wave(30), "HERE", *wave(30)])).replace('"HERE"', literal)
    fault = refused(api.post("/jobs", content=body, headers=JSON), 422, "invalid-input", "/params/series/values/30")
    assert "send null for NaN" in fault["detail"]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "1e999"])
def test_literals_that_json_does_not_have_never_come_back(api, literal):
    body = json.dumps(profile([*wave(30), "HERE", *wave(30)])).replace('"HERE"', literal)
    answer = api.post("/jobs", content=body, headers=JSON)
    assert answer.status_code in (202, 400, 422)
    strict(answer.text)


def test_a_number_beyond_a_double_is_refused(api):
    body = json.dumps(profile([*wave(30), 10**400]))
    refused(api.post("/jobs", content=body, headers=JSON), 422, "invalid-input", "/params/series/values/30")


# ---- problems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/nothing", "/jobs/job_none", "/jobs/" + "x" * 500, "/jobs/%00", "/jobs/%FF", "/datasets/ds_none"]
)
def test_404(api, path):
    refused(api.get(path), 404, "not-found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("GET", f"/jobs/job_none{part}")
            for part in ("/explain", "/events", "/logs", "/result", "/plot", "/artifacts")
        ),
        *(("POST", f"/jobs/job_none{part}") for part in ("/cancel", "/retry")),
        *(("GET", f"/datasets/ds_none/{part}") for part in ("content", "series")),
        *(("DELETE", path) for path in ("/jobs/job_none", "/datasets/ds_none")),
        ("GET", "/jobs/job_none/artifacts/result.json"),
        ("GET", "/problems/none"),
    ],
)
def test_404_at_every_address_below_an_unknown_id(api, method, path):
    refused(api.request(method, path), 404, "not-found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", {"GET", "POST"}),
        ("PATCH", "/jobs/job_none", {"GET", "DELETE"}),
        ("GET", "/jobs/job_none/cancel", {"POST"}),
        ("DELETE", "/datasets", {"GET", "POST"}),
        ("POST", "/capabilities", {"GET"}),
        ("GET", "/jobs/plan", {"POST"}),
        ("DELETE", "/jobs/batch", {"POST"}),
    ],
)
def test_405_names_what_is_allowed(api, method, path, allowed):
    answer = api.request(method, path)
    refused(answer, 405, "method-not-allowed")
    assert set(answer.headers["allow"].split(", ")) == allowed


def test_406_lists_what_there_is(api, finished):
    for name, offers in [("result", 4), ("plot", 2), ("events", 2)]:
        answer = api.get(finished["links"][name], headers={"Accept": "video/mp4"})
        assert len(refused(answer, 406, "not-acceptable")["available"]) == offers


def test_413_for_json(api):
    size = 17 << 20
    told = api.post("/jobs", content=b"[" + b"1," * (size // 2), headers=JSON)
    refused(told, 413, "payload-too-large")
    streamed = api.post("/jobs", content=itertools.repeat(b" " * 65536, size // 65536), headers=JSON)
    refused(streamed, 413, "payload-too-large")


@pytest.mark.parametrize("headers", [{"content-type": "text/plain"}, {"content-type": "application/xml"}, {}])
@pytest.mark.parametrize("path", ["/jobs", "/jobs/plan", "/jobs/batch"])
def test_415(api, path, headers):
    answer = api.post(path, content=json.dumps(profile()), headers=headers)
    refused(answer, 415, "unsupported-media-type")
    assert "application/json" in answer.headers["accept"]


@pytest.mark.parametrize(
    ("body", "status"), [("", 422), ("{", 422), ("[]", 422), ("null", 422), (b'"\xff"', 400), ("[" * 100_000, 400)]
)
def test_a_body_that_is_no_job(api, body, status):
    answer = api.post("/jobs", content=body, headers=JSON)
    slug = "invalid-input" if status == 422 else "bad-request"
    document = refused(answer, status, slug)
    assert status == 400 or document["errors"][0]["pointer"] == ""


def test_every_kind_of_problem_has_a_page(api):
    kinds = {kind["type"]: kind for kind in api.get("/problems").json()}
    named = {
        *("invalid-input", "timeout", "worker-lost", "out-of-memory", "internal"),
        *("idempotency-key-reused", "backend-unavailable", "not-ready"),
    }
    assert {f"/problems/{slug}" for slug in named} <= set(kinds)
    for uri, kind in kinds.items():
        page = api.get(uri, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert kind["title"] in page.text
        data = api.get(uri, headers={"Accept": "application/json"})
        assert data.json() == {**kind, "description": data.json()["description"]}


def test_workers_name_only_problems_that_have_a_page(api):
    from workers import failures
    from workers.training import failures_named

    assert failures_named.TrainingFailed.slug == "training-failed"
    slugs = {failures.JobFailure.slug, *(kind.slug for kind in failures.JobFailure.__subclasses__())}
    assert slugs
    for slug in slugs:
        assert api.get(f"/problems/{slug}").status_code == 200


# ---- idempotency -------------------------------------------------------------------------------------------------


def again(answer, first):
    """`answer` must be `first` over again, and say so."""
    assert answer.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert answer.status_code == first.status_code
    assert answer.text == first.text
    assert answer.headers.get("location") == first.headers.get("location")
    return answer


def test_the_same_key_and_body_give_the_first_answer(api):
    key = {"Idempotency-Key": "conventions-1"}
    first = api.post("/jobs", json=profile(), headers=key)
    assert first.status_code == 202
    assert "retry-after" in again(api.post("/jobs", json=profile(), headers=key), first).headers
    api.until(first.json()["id"], *FINAL)
    again(api.post("/jobs", json=profile(), headers=key), first)
    # The same value written otherwise is the same body.
    again(api.post("/jobs", content=json.dumps(profile(), indent=3), headers={**key, **JSON}), first)
    refused(api.post("/jobs", json=profile(window=9), headers=key), 422, "idempotency-key-reused")


def test_the_first_answer_of_who_waited_is_the_final_job(api):
    headers = {"Idempotency-Key": "conventions-2", "Prefer": "wait=30"}
    first = api.post("/jobs", json=profile(), headers=headers)
    assert first.status_code == 200
    again(api.post("/jobs", json=profile(), headers=headers), first)


def test_a_key_refused_is_a_key_unused(api):
    key = {"Idempotency-Key": "conventions-3"}
    refused(api.post("/jobs", json=profile(window=1), headers=key), 422, "invalid-input", "/params/window")
    assert api.post("/jobs", json=profile(), headers=key).status_code == 202


def test_batches_retries_and_uploads_take_keys_too(api, both_busy):
    key = {"Idempotency-Key": "conventions-4"}
    batch = {"jobs": [profile(), profile(window=9)]}
    first = api.post("/jobs/batch", json=batch, headers=key)
    again(api.post("/jobs/batch", json=batch, headers=key), first)
    refused(api.post("/jobs/batch", json={"jobs": [profile()]}, headers=key), 422, "idempotency-key-reused")
    one, other = (job["id"] for job in first.json()["jobs"])
    for job_id in (one, other):
        assert api.post(f"/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    tried = api.post(f"/jobs/{one}/retry", headers=key)
    again(api.post(f"/jobs/{one}/retry", headers=key), tried)
    api.post(f"/jobs/{tried.json()['id']}/cancel")


def test_an_upload_with_a_key_counts_its_bytes(api):
    headers = {"Idempotency-Key": "conventions-5", "content-type": "text/csv"}
    first = api.post("/datasets?name=keyed.csv", content=table(extra=" keyed"), headers=headers)
    assert first.status_code == 201
    again(api.post("/datasets?name=keyed.csv", content=table(extra=" keyed"), headers=headers), first)
    other = api.post("/datasets?name=keyed.csv", content=table(extra=" otherwise"), headers=headers)
    refused(other, 422, "idempotency-key-reused")
    refused(
        api.post("/datasets", content=b"no table", headers={**headers, "Idempotency-Key": "c-6"}),
        422,
        "unreadable-file",
    )
    assert api.post("/datasets", content=table(extra=" c6"), headers={**headers, "Idempotency-Key": "c-6"}).is_success


@pytest.mark.parametrize("key", ["", '"open', "a b", "x" * 256, b"\xe4"])
def test_a_key_is_visible_ascii(api, key):
    answer = api.post("/jobs", json=profile(), headers={"Idempotency-Key": key})
    refused(answer, 422, "invalid-input", "/header/idempotency-key")


def test_one_key_at_once_makes_one_job(house, api):
    label = {"labels": {"concurrent": "yes"}}
    gate = threading.Barrier(12)

    def post(_):
        with house.api() as own:
            gate.wait()
            return own.post("/jobs", json=profile() | label, headers={"Idempotency-Key": "conventions-7"})

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(post, range(12)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert sum(answer.status_code == 202 and "idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 202}) == 1
    assert len(api.get("/jobs?label=concurrent:yes").json()["items"]) == 1
    for answer in answers:
        if answer.status_code == 409:
            refused(answer, 409, "request-in-flight")


# ---- lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/jobs", "/datasets"])
@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1.5", ""])
def test_a_limit_has_bounds(api, path, limit):
    refused(api.get(path, params={"limit": limit}), 422, "invalid-input", "/query/limit")


def test_lists_hold_fifty_unless_told(api):
    api.post("/jobs/batch", json={"jobs": [profile() | {"labels": {"walk": "fifty"}}] * 51})
    page = api.get("/jobs?label=walk:fifty").json()
    assert len(page["items"]) == 50
    assert page["next"]
    assert len(api.get("/jobs?label=walk:fifty&limit=200").json()["items"]) == 51


def test_a_walk_meets_each_job_once_newest_first_while_new_ones_come(api):
    mark = {"labels": {"walk": "once"}}
    made = [job["id"] for job in api.post("/jobs/batch", json={"jobs": [profile() | mark] * 11}).json()["jobs"]]
    seen, url = [], "/jobs?label=walk:once&limit=3"
    while url:
        answer = api.get(url)
        body = answer.json()
        seen += [job["id"] for job in body["items"]]
        assert (body["next"] is not None) == ("link" in answer.headers)
        url = answer.links["next"]["url"] if "link" in answer.headers else None
        assert url is None or f"cursor={body['next']}" in url
        api.submit(profile() | mark)
    assert seen == made[::-1]


def test_datasets_come_newest_first(api):
    for number in range(3):
        api.post("/datasets", content=table(extra=f" newest {number}"), headers={"content-type": "text/csv"})
    seen, cursor = [], None
    while True:
        page = api.get("/datasets", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [(dataset["created_at"], dataset["id"]) for dataset in page["items"]]
        if not (cursor := page["next"]):
            break
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) >= 3


def test_a_cursor_is_bound_to_its_list(api, finished):
    cursor = api.get("/jobs?limit=1").json()["next"]
    refused(api.get("/jobs", params={"cursor": cursor, "state": "failed"}), 422, "cursor-invalid", "/query/cursor")
    other = api.get("/jobs", params={"cursor": cursor, "created_after": "2020-01-01T00:00:00Z"})
    refused(other, 422, "cursor-invalid", "/query/cursor")
    refused(api.get(finished["links"]["events"], params={"cursor": cursor}), 422, "cursor-invalid", "/query/cursor")


def forged(cursor, *parts):
    """The cursor with other contents after its digest."""
    digest = json.loads(base64.urlsafe_b64decode(cursor + "=="))[0]
    return base64.urlsafe_b64encode(json.dumps([digest, *parts]).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (1, 2),
        ("2024-01-01T00:00:00Z",),
        ("yesterday", "x"),
        ("2024-01-01T00:00:00", "x"),
        ("0001-01-01T00:00:00+23:59", "x"),
        (None, None),
        ("'", "\x00", 1),
    ],
)
def test_forged_cursors_are_refused(api, finished, parts):
    cursor = forged(api.get("/jobs?limit=1").json()["next"], *parts)
    refused(api.get("/jobs", params={"cursor": cursor}), 422, "cursor-invalid", "/query/cursor")


@pytest.mark.parametrize("cursor", ["", "x", "====", "e30", "bnVsbA", "☃", "A" * 3000])
def test_nonsense_is_no_cursor(api, cursor):
    for path in ("/jobs", "/datasets"):
        refused(api.get(path, params={"cursor": cursor}), 422, "cursor-invalid", "/query/cursor")


def test_the_event_log_and_the_artifacts_are_lists_too(api, finished):
    for name, key in (("events", "seq"), ("artifacts", "name")):
        whole = [item[key] for item in api.get(finished["links"][name]).json()["items"]]
        assert len(whole) > 3
        seen, url = [], f"{finished['links'][name]}?limit=2"
        while url:
            answer = api.get(url)
            seen += [item[key] for item in answer.json()["items"]]
            url = answer.links["next"]["url"] if "link" in answer.headers else None
        assert seen == whole


def test_filters(api, both_busy):
    mark = {"kept": "x:y", "other": ""}
    before = api.submit(profile() | {"labels": {"kept": "no"}})
    queued = api.submit(profile() | {"labels": mark})

    def ids(**query):
        return [job["id"] for job in api.get("/jobs", params=query).json()["items"]]

    assert ids(label="kept:x:y") == [queued["id"]]
    assert ids(label=["kept:x:y", "other:"]) == [queued["id"]]
    assert ids(label=["kept:x:y", "other:z"]) == []
    assert ids(label="kept:x:y", state="queued") == [queued["id"]]
    assert ids(label="kept:x:y", state=["queued", "running"], kind="matrix_profile") == [queued["id"]]
    assert ids(label="kept:x:y", state="running") == []
    assert set(ids(state="running")) == {job["id"] for job in both_busy}
    assert ids(label="kept:x:y", created_after=before["created_at"]) == [queued["id"]]
    assert ids(label="kept:x:y", created_before=queued["created_at"]) == []
    assert before["id"] in ids(created_before=queued["created_at"], limit=200)
    later = queued["created_at"].replace("Z", "+00:00")
    assert ids(label="kept:x:y", created_before=later) == []
    for job in (before, queued):
        api.post(f"/jobs/{job['id']}/cancel")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "done"),
        ("label", "nocolon"),
        ("label", ":x"),
        ("created_after", "2024-01-01"),
        ("created_before", "now"),
    ],
)
def test_filters_that_say_nothing_are_refused(api, name, value):
    pointer = f"/query/{name}"
    refused(api.get("/jobs", params={name: value}), 422, "invalid-input", pointer)


# ---- versions and waiting ----------------------------------------------------------------------------------------


def test_a_version_changes_with_the_job_and_not_without(api, both_busy):
    job = api.submit(profile())
    first = api.get(job["links"]["self"])
    tag = first.headers["etag"]
    assert tag.startswith('"')
    unchanged = api.get(job["links"]["self"], headers={"If-None-Match": f'"other", {tag}'})
    assert unchanged.status_code == 304
    assert unchanged.content == b""
    assert unchanged.headers["etag"] == tag
    assert "retry-after" in unchanged.headers
    cancelled = api.post(job["links"]["cancel"])
    assert cancelled.headers["etag"] != tag
    changed = api.get(job["links"]["self"], headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] == cancelled.headers["etag"]
    assert api.get(job["links"]["self"], headers={"If-None-Match": changed.headers["etag"]}).status_code == 304


def test_waiting_for_a_job_answers_when_it_is_final(api):
    answer = api.post("/jobs", json=profile(), headers={"Prefer": "wait=30"})
    assert answer.status_code == 200
    assert answer.json()["state"] == "succeeded"
    assert answer.headers["preference-applied"] == "wait=30"
    assert answer.headers["location"] == answer.json()["links"]["self"]
    assert "retry-after" not in answer.headers
    again = api.get(answer.json()["links"]["self"], headers={"Prefer": "respond-async, wait=999"})
    assert again.status_code == 200
    assert again.headers["preference-applied"] == "wait=60"
    assert "retry-after" not in again.headers


def test_waiting_ends_with_the_job_as_it_is(api, both_busy):
    answer = api.post("/jobs", json=profile(), headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert answer.json()["state"] == "queued"
    assert answer.headers["preference-applied"] == "wait=1"
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.elapsed.total_seconds() == pytest.approx(1, abs=0.8)
    again = api.get(answer.json()["links"]["self"], headers={"Prefer": "wait=1"})
    assert again.status_code == 200
    assert again.json()["state"] == "queued"
    assert again.headers["preference-applied"] == "wait=1"
    assert int(again.headers["retry-after"]) >= 1
    api.post(answer.json()["links"]["cancel"])


def test_who_waits_hears_of_a_cancel_at_once(house, api, both_busy):
    job = api.submit(profile())
    with house.api() as own, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(own.get, job["links"]["self"], headers={"Prefer": "wait=30"})
        api.post(job["links"]["cancel"])
        assert waiting.result(5).json()["state"] == "cancelled"


def test_every_202_says_when_to_look_again(api, both_busy):
    job = api.post("/jobs", json=profile())
    batch = api.post("/jobs/batch", json={"jobs": [profile()]})
    cancelled = api.post(job.json()["links"]["cancel"])
    retried = api.post(f"/jobs/{job.json()['id']}/retry")
    running = api.post(both_busy[0]["links"]["cancel"])
    assert [a.status_code for a in (job, batch, cancelled, retried, running)] == [202] * 5
    assert all(int(a.headers["retry-after"]) >= 1 for a in (job, batch, cancelled, retried, running))
    for job_id in (batch.json()["jobs"][0]["id"], retried.json()["id"]):
        api.post(f"/jobs/{job_id}/cancel")


# ---- names of requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/jobs", "/nothing", "/health/live", "/openapi.json", "/docs"])
def test_a_request_has_a_name(api, path):
    assert api.get(path, headers={"X-Request-ID": "mine-7"}).headers["x-request-id"] == "mine-7"
    assert len(api.get(path).headers["x-request-id"]) >= 16


def test_traceparent_is_taken(api):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert api.get("/jobs", headers={"traceparent": trace}).status_code == 200
    assert api.get("/jobs", headers={"traceparent": "nonsense"}).status_code == 200


# ---- the log -----------------------------------------------------------------------------------------------------


def listen(api, path, seconds=60, **request):
    """The whole event stream, up to its end."""
    with httpx_sse.connect_sse(api, "GET", path, timeout=seconds, **request) as stream:
        return list(stream.iter_sse())


def test_the_stream_tells_what_the_page_tells_and_ends(api, finished):
    path = finished["links"]["events"]
    page = api.get(path, params={"limit": 200}).json()["items"]
    assert [event["seq"] for event in page] == list(range(1, len(page) + 1))
    assert all(set(event) == {"seq", "at", "type", "data"} and TIME.fullmatch(event["at"]) for event in page)
    assert {event["type"] for event in page} <= {"state", "phase", "progress", "log", "metric", "artifact", "warning"}
    *events, end = listen(api, path)
    assert end.event == "end"
    assert [json.loads(event.data) for event in events] == page
    assert [int(event.id) for event in events] == [event["seq"] for event in page]
    assert [event.event for event in events] == [event["type"] for event in page]


def test_a_stream_resumes_where_it_was_left(api, finished):
    path = finished["links"]["events"]
    last = finished_seq = api.events(finished["id"])[-1]["seq"]

    def ids(**request):
        return [int(event.id) for event in listen(api, path, **request) if event.event != "end"]

    assert ids(params={"after": 3}) == list(range(4, finished_seq + 1))
    assert ids(headers={"Last-Event-ID": "4"}) == list(range(5, finished_seq + 1))
    assert ids(headers={"Last-Event-ID": "5"}, params={"after": 1}) == list(range(6, finished_seq + 1))
    assert ids(headers={"Last-Event-ID": "not ours"}, params={"after": last - 1}) == [last]
    assert ids(params={"after": last}) == []
    page = api.get(path, params={"after": 3}).json()["items"]
    assert [event["seq"] for event in page] == list(range(4, finished_seq + 1))


@pytest.mark.parametrize("after", ["-1", "x", str(2**63)])
def test_after_is_a_number_of_ours(api, finished, after):
    refused(api.get(finished["links"]["events"], params={"after": after}), 422, "invalid-input", "/query/after")


def test_a_live_stream_is_in_order_without_gaps(api, house):
    job = api.submit(profile(wave(6000), window=100, k=2))
    with house.api() as own:
        *events, end = listen(own, job["links"]["events"])
    assert end.event == "end"
    told = [json.loads(event.data) for event in events]
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert [event["data"]["to"] for event in told if event["type"] == "state"] == ["queued", "running", "succeeded"]
    fractions = [event["data"]["fraction"] for event in told if event["type"] == "progress"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    phases = [event["data"]["phase"] for event in told if event["type"] == "phase"]
    assert phases.index("loading") < phases.index("computing") < phases.index("saving")
    assert told == api.events(job["id"])


def test_a_stream_of_a_waiting_job_is_alive(api, house, both_busy):
    job = api.submit(profile())
    with house.api() as own, ThreadPoolExecutor(1) as thread:
        events = thread.submit(listen, own, job["links"]["events"])
        api.post(job["links"]["cancel"])
        told = events.result(10)
    assert [json.loads(e.data)["data"]["to"] for e in told if e.event == "state"] == ["queued", "cancelled"]
    assert told[-1].event == "end"


def test_logs_are_plain_text_and_following_ends(api, finished, both_busy):
    plain = api.get(finished["links"]["logs"])
    assert plain.headers["content-type"].startswith("text/plain")
    followed = api.get(finished["links"]["logs"], params={"follow": "true"})
    assert followed.text == plain.text
    job = both_busy[0]
    with ThreadPoolExecutor(1) as thread, httpx.Client(base_url=api.base_url, timeout=30, trust_env=False) as own:
        following = thread.submit(own.get, job["links"]["logs"], params={"follow": "true"})
        api.post(job["links"]["cancel"])
        assert following.result(20).status_code == 200


def test_answers_do_not_wait_for_acknowledgements(api):
    """Without TCP_NODELAY every answer takes 40 ms more."""
    assert min(api.get("/health/live").elapsed.total_seconds() for _ in range(20)) < 0.03


# ---- health ------------------------------------------------------------------------------------------------------


def test_health(api):
    assert api.get("/health/live").status_code == 200
    assert api.get("/health/ready").status_code == 200
