"""Two owners on one server with keys: neither learns anything of what the other has, at no address that the schema tells of.

`ROUTES` says of each what a stranger meets there. A route that is not in it fails the first test, until somebody has thought of it.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.callers import Scope
from app.kit.ids import new_id
from app.main import create_app
from app.settings import Settings
from tests.api.asking import CSV, profile, refused, table
from tests.api.keyring import Keyring
from tests.house import Api, long_series
from tests.sources.packing import packed
from workers.operations import CHECKPOINT

OPEN, ONES_OWN, LISTED, MADE, SHARED, KEYS = "open", "one's own", "listed", "made", "shared", "keys"
"""For all; for the owner of what the path names, and nobody else; a list of what one has; makes what will be one's own; the same for
all who have a key; for admins, of all owners."""

ROUTES: dict[str, str] = {
    "GET /health/live": OPEN,
    "GET /health/ready": OPEN,
    "GET /problems": OPEN,
    "GET /problems/{slug}": OPEN,
    "GET /capabilities": SHARED,
    "POST /capabilities/probes": MADE,
    "GET /jobs": LISTED,
    "POST /jobs": MADE,
    "POST /jobs/plan": MADE,
    "POST /jobs/batch": MADE,
    "GET /jobs/{job_id}": ONES_OWN,
    "DELETE /jobs/{job_id}": ONES_OWN,
    "POST /jobs/{job_id}/cancel": ONES_OWN,
    "POST /jobs/{job_id}/retry": ONES_OWN,
    "GET /jobs/{job_id}/explain": ONES_OWN,
    "GET /jobs/{job_id}/events": ONES_OWN,
    "GET /jobs/{job_id}/logs": ONES_OWN,
    "GET /jobs/{job_id}/artifacts": ONES_OWN,
    "GET /jobs/{job_id}/artifacts/{name}": ONES_OWN,
    "GET /jobs/{job_id}/result": ONES_OWN,
    "GET /jobs/{job_id}/plot": ONES_OWN,
    "GET /datasets": LISTED,
    "POST /datasets": MADE,
    "GET /datasets/{dataset_id}": ONES_OWN,
    "DELETE /datasets/{dataset_id}": ONES_OWN,
    "GET /datasets/{dataset_id}/content": ONES_OWN,
    "GET /datasets/{dataset_id}/series": ONES_OWN,
    "GET /sources": LISTED,
    "POST /sources": MADE,
    "GET /sources/{source_id}": ONES_OWN,
    "DELETE /sources/{source_id}": ONES_OWN,
    "GET /keys": KEYS,
    "POST /keys": KEYS,
    "GET /keys/{key_id}": KEYS,
    "DELETE /keys/{key_id}": KEYS,
}

BODIES: dict[str, dict[str, Any]] = {
    "POST /capabilities/probes": {"json": {"check": "cpu"}},
    "POST /jobs": {"json": profile()},
    "POST /jobs/plan": {"json": profile()},
    "POST /jobs/batch": {"json": {"jobs": [profile()]}},
    "POST /datasets": {"content": b"x\n1\n2\n3\n", "headers": {"content-type": CSV}},
    "POST /sources": {"files": {"file": ("own.zip", packed({"own.py": ""}))}},
    "POST /keys": {"json": {"owner": "nobody", "scopes": ["read"]}},
}
"""What a request that would be taken has beside its path."""

ANNS_CODE = {"kiln.py": "of = 'ann'"}

HIDDEN = {"/", "/docs", "/docs/oauth2-redirect", "/redoc", "/redoc.js", "/openapi.json", "/static-offline-docs"}
"""The documentation: open, and not in the schema."""

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "GET /jobs/{job_id}": [{"headers": {"Prefer": "wait=2"}}, {"headers": {"If-None-Match": "*"}}],
    "GET /jobs/{job_id}/events": [{"headers": {"Accept": "text/event-stream"}}, {"headers": {"Last-Event-ID": "1"}}],
    "GET /jobs/{job_id}/logs": [{"params": {"follow": "true"}}, {"params": {"rank": "0"}}],
    "GET /jobs/{job_id}/result": [{"params": {"partial": "true"}}, {"headers": {"Accept": CSV}}],
    "GET /jobs/{job_id}/plot": [{"headers": {"Accept": "image/svg+xml"}}],
    "GET /jobs/{job_id}/artifacts/{name}": [{"headers": {"Range": "bytes=0-9"}}],
    "GET /datasets/{dataset_id}/content": [{"headers": {"Range": "bytes=0-9"}}],
    "POST /jobs/{job_id}/retry": [{"headers": {"Prefer": "wait=2"}}, {"headers": {"Idempotency-Key": "again"}}],
}
"""Other ways to ask the same address."""


@dataclass
class Owner:
    """What one owner has."""

    api: Api
    ids: dict[str, str]
    """By the name that a path gives them."""
    cancelled: str
    running: str

    def everything(self) -> set[str]:
        return {self.ids["job_id"], self.ids["dataset_id"], self.ids["source_id"], self.cancelled, self.running}


@pytest.fixture(scope="module")
def ann(keyring: Keyring, root: Api) -> Iterator[Owner]:
    """An owner with a dataset, a source, and three jobs: one that succeeded, one that runs, and one that was cancelled."""
    api = keyring.client(keyring.make(root, "ann", "read", "submit", "source")["key"])
    dataset = api.post("/datasets", content=table(extra=" ann"), headers={"content-type": CSV}).json()
    source = api.post("/sources", files={"file": ("kiln.zip", packed(ANNS_CODE))}).json()
    job = api.submit(profile(series={"dataset": dataset["id"], "column": "celsius"}, window=4), Prefer="wait=60")
    assert job["state"] == "succeeded", job
    assert api.get(job["links"]["plot"]).status_code == 200
    long = api.post("/datasets?name=long.npy", content=long_series(), headers={"content-type": "application/x-npy"})
    body = profile(window=100, series={"dataset": long.json()["id"]})
    running = api.submit(body | {"execution": {"backend": "cpu", "implementation": "stumpy"}})
    cancelled = api.submit(body)
    assert api.post(cancelled["links"]["cancel"]).status_code == 202
    api.until(running["id"], "running")
    ids = {"job_id": job["id"], "dataset_id": dataset["id"], "source_id": source["id"], "name": "result.csv"}
    yield Owner(api, ids, cancelled["id"], running["id"])
    api.post(running["links"]["cancel"])


@pytest.fixture(scope="module")
def bob(keyring: Keyring, root: Api) -> Api:
    """Another owner's key, with every scope but that of an admin."""
    return keyring.client(keyring.make(root, "bob", "read", "submit", "source")["key"])


@pytest.fixture(scope="module")
def strangers(keyring: Keyring, root: Api, bob: Api) -> list[Api]:
    return [bob, keyring.client(keyring.make(root, "bob", "admin")["key"]), root]


def path_of(route: str, ids: dict[str, str]) -> tuple[str, str]:
    method, path = route.split(" ")
    return method, path.format(**{"slug": "not-found", "key_id": "key_x", **ids})


def of(kind: str) -> list[str]:
    return [route for route, its in ROUTES.items() if its == kind]


# ---- every route -----------------------------------------------------------------------------------------------------


def told_of(api: httpx.Client) -> dict[str, dict[str, Any]]:
    paths = api.get("/openapi.json").json()["paths"]
    return {f"{method.upper()} {path}": told for path, methods in paths.items() for method, told in methods.items()}


def test_somebody_has_thought_of_every_route(keyring):
    assert set(told_of(keyring.client())) == set(ROUTES)


def test_what_the_schema_hides_is_documentation_or_the_workers_door(keyring):
    routes = list(flat(create_app(Settings(auth="keys")).routes))
    shown = {route.split(" ")[1] for route in ROUTES}
    hidden = {path for route in routes if (path := re.sub(r":\w+}", "}", route.path)) not in shown}
    doors = {path for path in hidden if path.startswith("/internal/")}
    assert hidden - doors == HIDDEN
    assert len(doors) > 4
    stranger = keyring.client()
    for path in HIDDEN - {"/static-offline-docs"} | {"/static-offline-docs/swagger-ui.css"}:
        assert stranger.get(path, follow_redirects=True).status_code == 200
    for route in routes:
        for method in route.methods if route.path.startswith("/internal/") else ():
            answer = stranger.request(method, re.sub(r"[{}]|:\w+", "", route.path))
            refused(answer, 401, "worker-not-admitted")


def flat(routes: Iterable[Any]) -> Iterator[Any]:
    """Routes, those of included routers too."""
    for route in routes:
        router = getattr(route, "original_router", None)
        yield from flat(router.routes) if router else [route]


@pytest.mark.parametrize("route", ROUTES)
def test_without_a_key_only_what_is_open_answers(keyring, ann, route):
    method, path = path_of(route, ann.ids)
    answer = keyring.client().request(method, path, **BODIES.get(route, {}))
    if ROUTES[route] == OPEN:
        assert answer.status_code == 200
    else:
        refused(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/nothing", "/jobs/", "/job", "/healthy", "/docsx", "/openapi.json/x", "/problemsx"])
def test_without_a_key_nobody_hears_what_there_is(keyring, ann, path):
    answer = keyring.client().get(path)
    assert answer.status_code in (401, 404)
    assert ann.api.get(path).status_code in (307, 404)
    if not path.startswith("/openapi"):
        refused(answer, 401, "unauthorized")


@pytest.mark.parametrize("route", of(ONES_OWN))
def test_what_another_has_is_not_there(ann, strangers, route):
    """As if it were not: the same answer, but for the id, that anybody gets to one that never was."""
    never = {name: new_id(value.partition("_")[0]) if "_" in value else value for name, value in ann.ids.items()}
    jobs = [ann.ids["job_id"], ann.cancelled, ann.running] if "{job_id}" in route else [ann.ids["job_id"]]
    for stranger in strangers:
        for variant in [{}, *VARIANTS.get(route, [])]:
            for job_id in jobs:
                ids = ann.ids | {"job_id": job_id}
                method, path = path_of(route, ids)
                answer = stranger.request(method, path, **variant)
                refused(answer, 404, "not-found")
                _, other = path_of(route, never)
                same = stranger.request(method, other, **variant)
                assert anonymous(answer, ids) == anonymous(same, never)
                assert set(answer.headers) == set(same.headers)


def anonymous(answer: httpx.Response, ids: dict[str, str]) -> str:
    text = answer.text
    for name, value in ids.items():
        text = text.replace(value, f"<{name}>") if "_" in value else text
    return text


@pytest.mark.parametrize("route", of(ONES_OWN))
def test_and_what_it_has_is_there_for_its_owner(ann, route):
    """So that the test above would notice a route that finds nothing for anybody. Nothing is changed here."""
    method, path = path_of(route, ann.ids)
    if method == "GET":
        assert ann.api.get(path).status_code == 200
    elif method == "POST":
        assert ann.api.post(path).status_code == 409


@pytest.mark.parametrize("route", of(LISTED))
def test_lists_never_show_what_another_has(ann, strangers, route):
    _, path = path_of(route, ann.ids)
    assert any(each in ann.api.get(path, params={"limit": 200}).text for each in ann.everything())
    for stranger in strangers:
        answer = stranger.get(path, params={"limit": 200})
        assert answer.status_code == 200
        assert not [each for each in ann.everything() if each in answer.text]


def test_what_all_may_see_names_nobody(ann, bob):
    text = bob.get("/capabilities").text
    assert '"dask"' in text
    assert not [each for each in (*ann.everything(), '"ann"') if each in text]


def test_a_cursor_of_another_leads_into_ones_own_list(ann, bob):
    cursor = ann.api.get("/jobs?limit=1").json()["next"]
    assert cursor
    assert not [each for each in ann.everything() if each in bob.get(f"/jobs?limit=200&cursor={cursor}").text]


# ---- scopes ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def carl(keyring: Keyring, root: Api) -> dict[str, Api]:
    """An owner's keys: scopes, joined, → a client."""
    wanted = [[scope] for scope in Scope] + [
        [s for s in Scope if s not in (scope, "admin")] for scope in list(Scope)[:3]
    ]
    return {",".join(scopes): keyring.client(keyring.make(root, "carl", *scopes)["key"]) for scopes in wanted}


@pytest.mark.parametrize("route", [route for route in ROUTES if ROUTES[route] != OPEN])
def test_a_key_is_for_what_its_scopes_say(keyring, ann, carl, route):
    """The scope that the schema tells of is the one that it takes, and the others are not enough."""
    ((scope,),) = [each["key"] for each in told_of(keyring.client())[route]["security"]]
    method, path = path_of(route, ann.ids)
    without = [s for s in Scope if s not in (scope, "admin")]
    for key, allowed in [(scope, True), ("admin", True), (",".join(without), False)]:
        answer = carl[key].request(method, path, **BODIES.get(route, {})) if key in carl else None
        if answer is None:
            continue
        if allowed:
            assert answer.status_code in (200, 201, 202, 204, 404), answer.text
            keyring.shown += [answer.json()["key"]] if route == "POST /keys" else []
        else:
            fault = refused(answer, 403, "forbidden")
            assert f"`{scope}`" in fault["detail"]


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.startswith("GET ")])
def test_who_may_look_changes_nothing(ann, carl, route):
    method, path = path_of(route, ann.ids)
    refused(carl["read"].request(method, path, **BODIES.get(route, {})), 403, "forbidden")


def test_an_admin_sees_all_keys_and_nobody_elses_things(ann, strangers):
    admin = strangers[1]
    owners = {key["owner"] for key in admin.get("/keys?limit=200").json()["items"]}
    assert {"ann", "bob", "root"} <= owners
    assert admin.get("/keys/" + admin.get("/keys?limit=1").json()["items"][0]["id"]).status_code == 200


# ---- what a body may name --------------------------------------------------------------------------------------------


def bodies(dataset: str, source: str, job: str) -> dict[str, dict[str, Any]]:
    """Requests that name something, each in another place."""
    series = {"dataset": dataset, "column": "celsius"}
    training: dict[str, Any] = {
        "kind": "training",
        "params": {
            "config": {
                "trainer": {"accelerator": "cpu", "max_epochs": 1},
                "model": {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 2, "season": 2}},
                "data": {
                    "class_path": "workers.training.data.SeriesWindows",
                    "init_args": {"series": {"values": [1.0] * 60}},
                },
            }
        },
    }

    def trained(change: Any) -> dict[str, Any]:
        body = copy.deepcopy(training)
        change(body["params"])
        return body

    in_data = ["config", "data", "init_args", "series"]

    def put(params: dict[str, Any], *way: str, value: Any) -> None:
        *inner, last = way
        for name in inner:
            params = params[name]
        params[last] = value

    return {
        "a series": profile(series=series),
        "the other side of a join": profile(against=series),
        "one of a list": {"kind": "consensus_motif", "params": {"series": [series, series], "window": 4}},
        "columns": {
            "kind": "multidimensional_profile",
            "params": {"series": {"dataset": dataset, "columns": ["celsius"]}, "window": 4},
        },
        "both of two": {"kind": "mpdist", "params": {"a": series, "b": series, "window": 4}},
        "a series to train on": trained(lambda params: put(params, *in_data, value=series)),
        "a table to train on": trained(lambda params: put(params, *in_data, value={"dataset": dataset})),
        "a source": trained(lambda params: params.update(source=source)),
        "a checkpoint": trained(
            lambda params: put(params, "config", "ckpt_path", value={"job": job, "artifact": "result.csv"})
        ),
    }


@pytest.mark.parametrize("path", ["/jobs", "/jobs/plan", "/jobs/batch"])
@pytest.mark.parametrize("what", bodies("", "", ""))
def test_what_another_has_cannot_be_named(ann, bob, strangers, what, path):
    """And the refusal is the one that names what never was."""
    ids = {name: ann.ids[name] for name in ("dataset_id", "source_id", "job_id")}
    never = {name: new_id(value.partition("_")[0]) for name, value in ids.items()}

    def ask(stranger: Api, named: dict[str, str]) -> httpx.Response:
        body = bodies(named["dataset_id"], named["source_id"], named["job_id"])[what]
        return stranger.post(path, json={"jobs": [body]} if path == "/jobs/batch" else body)

    for stranger in strangers:
        theirs, nobodys = ask(stranger, ids), ask(stranger, never)
        refused(theirs, 422, "invalid-input")
        assert any(value in theirs.text for value in ids.values())
        assert anonymous(theirs, ids) == anonymous(nobodys, never)


def test_a_job_with_a_source_takes_the_scope_of_code(ann, keyring, root):
    own = keyring.client(keyring.make(root, "ann", "read", "submit")["key"])
    body = bodies(ann.ids["dataset_id"], ann.ids["source_id"], ann.ids["job_id"])["a source"]
    for path, sent in [("/jobs", body), ("/jobs/plan", body), ("/jobs/batch", {"jobs": [profile(), body]})]:
        assert "`source`" in refused(own.post(path, json=sent), 403, "forbidden")["detail"]


def test_so_does_its_retry_and_the_answer_to_one_given_again(ann, keyring, root):
    body = bodies(ann.ids["dataset_id"], ann.ids["source_id"], ann.ids["job_id"])["a source"]
    body["params"]["config"]["data"]["init_args"]["context"] = 4
    job, once = ann.api.submit(body), {"Idempotency-Key": new_id("")}
    assert ann.api.post(job["links"]["cancel"]).status_code == 202
    again = ann.api.post(f"{job['links']['self']}/retry", headers=once)
    assert again.status_code == 202, again.text
    own = keyring.client(keyring.make(root, "ann", "read", "submit")["key"])
    for headers in ({}, once):
        answer = own.post(f"{job['links']['self']}/retry", headers=headers)
        assert "`source`" in refused(answer, 403, "forbidden")["detail"]
    assert own.post(again.json()["links"]["cancel"]).status_code == 202
    assert own.post(f"/jobs/{ann.cancelled}/retry", headers=once).status_code in (202, 422)


def test_nothing_of_another_is_touched_before_it_is_known_whose_it_is(keyring, ann, bob):
    """A checkpoint that cannot be copied tells whether somebody tried to."""
    kept = keyring.house.home / "jobs" / ann.cancelled / "7" / CHECKPOINT
    kept.mkdir(parents=True)
    refused(bob.get(f"/jobs/{ann.cancelled}/result?partial=true"), 404, "not-found")
    refused(bob.get(f"/jobs/{'j' * 400}/result?partial=true"), 404, "not-found")
    kept.rmdir()
    kept.parent.rmdir()


# ---- what two have alike ---------------------------------------------------------------------------------------------


def test_the_same_bytes_are_two_datasets_of_two_owners(ann, bob):
    answer = bob.post("/datasets", content=table(extra=" ann"), headers={"content-type": CSV})
    assert (answer.status_code, answer.json()["id"] != ann.ids["dataset_id"]) == (201, True)
    answer = bob.post("/sources", files={"file": ("kiln.zip", packed(ANNS_CODE))})
    assert answer.json()["id"] != ann.ids["source_id"]


@pytest.mark.parametrize("route", of(MADE))
def test_the_idempotency_keys_of_two_owners_are_two(ann, bob, route):
    if route == "POST /jobs/plan":  # makes nothing
        return
    method, path = path_of(route, ann.ids)
    request = copy.deepcopy(BODIES[route])
    request["headers"] = request.get("headers", {}) | {"Idempotency-Key": f"one of two {route}".replace(" ", "-")}
    first, second = ann.api.request(method, path, **request), bob.request(method, path, **request)
    assert first.is_success, first.text
    assert second.is_success, second.text
    assert "idempotency-replayed" not in second.headers
    assert first.json() != second.json()
    again = ann.api.request(method, path, **request)
    assert (again.headers["idempotency-replayed"], again.json()) == ("true", first.json())


def test_keys_of_one_owner_share_what_it_has(ann, keyring, root):
    other = keyring.client(keyring.make(root, "ann", "read")["key"])
    assert other.get(f"/jobs/{ann.ids['job_id']}").json() == ann.api.get(f"/jobs/{ann.ids['job_id']}").json()


def test_nothing_happened_to_what_was_asked_for(ann):
    """After all of the above."""
    assert ann.api.job(ann.ids["job_id"])["state"] == "succeeded"
    for place in ("dataset", "source"):
        assert ann.api.get(f"/{place}s/{ann.ids[f'{place}_id']}").status_code == 200
