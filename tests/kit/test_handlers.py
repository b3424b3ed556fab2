import asyncio
import logging

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.kit import handlers, middleware


def errors(document):
    return [(error["pointer"], error["detail"]) for error in document["errors"]]


def test_a_problem_is_answered_as_it_was_raised(problem):
    body = {"item": {"kind": "paint", "colour": "none", "layers": 1}}
    assert problem(409, "POST", "/shop/orders", json=body) == {
        "type": "/problems/out-of-paint",
        "title": "Out of paint",
        "status": 409,
        "detail": "There is no 'none' left.",
        "instance": "/shop/orders",
        "errors": [{"pointer": "/item/colour", "detail": "There is no 'none' left."}],
        "left": 0,
    }


def test_unknown_paths_and_methods_are_problems_too(api, problem):
    assert problem(404, "GET", "/no/such%20thing")["instance"] == "/no/such%20thing"
    assert problem(405, "DELETE", "/shop/orders")["type"] == "/problems/method-not-allowed"


def test_allow_lists_the_methods_of_every_route_at_the_path(api):
    assert api("DELETE", "/shop/orders").headers["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("status", "type_"),
    [(400, "/problems/bad-request"), (401, "about:blank"), (418, "about:blank"), (503, "/problems/unavailable")],
)
def test_http_exceptions_keep_status_and_headers(api, problem, status, type_):
    assert problem(status, "GET", f"/raises/{status}")["type"] == type_
    assert api("GET", f"/raises/{status}").headers["x-kept"] == "yes"


def test_an_exception_that_is_no_error_stays_empty(api):
    assert api("GET", "/raises/304").content == b""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("/item", "is required and is not there")]),
        ([], [("", "must be an object")]),
        ({"item": {"kind": "paint", "layers": 1}}, [("/item/colour", "is required and is not there")]),
        (
            {"item": {"kind": "paint", "colour": "red", "layers": 0}},
            [("/item/layers", "must be at least 1, not 0")],
        ),
        ({"item": {"kind": "stone", "weight": 0.5}}, [("/item", "a stone weighs one or more")]),
        (
            {"item": {"kind": "stone", "weight": 1, "a/b~c": 1}},
            [("/item/a~1b~0c", "`a/b~c` is not known here. Known are `kind`, `weight`, `parts`.")],
        ),
        (
            {"item": {"kind": "stone", "weight": 1, "parts": [1, {"n": "many"}]}},
            [
                ("/item/parts/1", "must be a whole number"),
                (
                    "/item/parts/1/n",
                    'must be a whole number, not "many"',
                ),
            ],
        ),
        ({"item": {"kind": "stone", "weight": 1}, "when": "2026-01-01"}, None),
    ],
)
def test_pointers_lead_to_real_members(problem, body, expected):
    document = problem(422, "POST", "/shop/orders", json=body)
    assert document["type"] == "/problems/invalid-input"
    if expected is not None:
        assert errors(document) == expected
    else:
        assert errors(document) == [("/when", "A time is RFC 3339 with an offset, such as 2026-01-31T12:00:00Z")]


@pytest.mark.parametrize("item", [{"kind": "glass"}, {}])
def test_a_union_is_pointed_at_by_its_tag(problem, item):
    assert problem(422, "POST", "/shop/orders", json={"item": item})["errors"][0]["pointer"] == "/item/kind"


def test_a_member_named_like_a_union_branch_does_not_mislead(problem):
    item = {"kind": "paint", "colour": "red", "layers": 0, "paint": 5}
    assert problem(422, "POST", "/shop/orders", json={"item": item})["errors"][0]["pointer"] == "/item/layers"


def test_broken_json_tells_where_it_breaks(problem):
    document = problem(
        422, "POST", "/shop/orders", content=b'{"item":\n  1,,}', headers={"content-type": "application/json"}
    )
    assert errors(document) == [("", "Not JSON: Expecting property name enclosed in double quotes at line 2, column 5")]


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_number_is_refused_where_it_stands(problem, constant):
    body = f'{{"odd": {{"NaN": "\\" Infinity"}},\n "when": {constant}}}'.encode()
    document = problem(422, "POST", "/shop/orders", content=body, headers={"content-type": "application/json"})
    assert errors(document) == [("/when", f'{constant} is not JSON; send null for NaN, or "inf" and "-inf" as words')]


def test_an_unknown_query_parameter_is_refused_and_the_nearest_named(problem):
    assert errors(problem(422, "GET", "/shop/orders?limit=3&color=red&x%2Fy=")) == [
        (
            "/query/color",
            "`color` is not known here; did you mean `colour`? Known are `colour`, `also`, `limit`, `cursor`.",
        ),
        ("/query/x~1y", "`x/y` is not known here. Known are `colour`, `also`, `limit`, `cursor`."),
    ]
    assert errors(problem(422, "GET", "/problems?x=1")) == [("/query/x", "`x` is not known here. Nothing is.")]


@pytest.mark.parametrize(
    "body",
    [b"\xff\xfe\xfd", b"1" * 900, b"[" * 900, b'{"item": 1e999, "odd": {"\\ud800": "x"}}', b"NaN", b'"\\ud83d"', b""],
)
def test_hostile_bodies_are_the_callers_fault(api, body):
    response = api("POST", "/shop/orders", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["status"] == response.status_code


def test_parameters_are_pointed_at_by_where_they_stand(problem):
    assert problem(422, "GET", "/shop/orders?limit=0")["errors"] == [
        {"pointer": "/query/limit", "detail": 'must be at least 1, not "0"'}
    ]
    assert problem(422, "GET", "/shop/orders/x")["errors"][0]["pointer"] == "/path/number"
    header = problem(422, "GET", "/state", headers={"strange": "secret"})
    assert header["errors"][0]["pointer"] == "/header/strange"
    assert "secret" not in header["detail"]
    assert problem(422, "POST", "/form")["errors"] == [{"pointer": "/file", "detail": "is required and is not there"}]


def test_many_errors_are_cut_short(problem):
    odd = {str(number): "x" for number in range(80)}
    document = problem(422, "POST", "/shop/orders", json={"odd": odd})
    assert len(document["errors"]) == 81
    assert document["detail"] == "/item: is required and is not there (and 80 more)"


def test_a_fault_of_ours_tells_nothing_and_is_logged_once(api, problem, caplog):
    with caplog.at_level(logging.INFO):
        document = problem(500, "GET", "/fails", headers={"X-Request-ID": "abc"})
    assert document["type"] == "/problems/internal"
    assert "42" not in str(document)
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "abc" in record.getMessage()
    assert record.exc_info
    assert api("GET", "/fails", headers={"X-Request-ID": "abc"}).headers["x-request-id"] == "abc"


def test_a_path_cannot_forge_a_line_of_the_log(caplog):
    app = FastAPI()
    handlers.install(app)

    @app.get("/fails/{name}")
    async def fails(name: str) -> None:
        raise RuntimeError(name)

    async def ask():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://kit") as client:
            return await client.get("/fails/x%0A2026-01-01%20all%20is%20well")

    assert asyncio.run(ask()).status_code == 500
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "\n" not in record.getMessage()


def test_what_a_middleware_raises_is_a_problem_too():
    class Broken:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            raise RuntimeError("the secret is 42")

    async def ask():
        app = FastAPI()
        handlers.install(app)
        app.add_middleware(Broken)
        middleware.install(app, max_body_bytes=10)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://kit") as client:
            return await client.get("/", headers={"X-Request-ID": "m1"})

    response = asyncio.run(ask())
    assert response.json()["type"] == "/problems/internal"
    assert "42" not in response.text
    assert response.headers["x-request-id"] == "m1"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
items = st.fixed_dictionaries(
    {},
    optional={"kind": st.sampled_from(["paint", "stone", "x"]), "weight": values, "parts": values, "colour": values},
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.fixed_dictionaries({}, optional={"item": items | values, "odd": values, "when": values}))
def test_every_pointer_is_real_or_missing_at_a_real_place(api, body):
    response = api("POST", "/shop/orders", json=body)
    if response.status_code == 413:
        return
    assert response.status_code in (200, 409, 422), response.text
    for error in response.json().get("errors", []):
        found, steps = body, error["pointer"].split("/")[1:]
        for number, step in enumerate(steps):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(step)]
            elif step in found:
                found = found[step]
            else:
                assert number == len(steps) - 1
                assert isinstance(found, dict)
