import logging

import pytest

from app.kit.middleware import RequestIdFilter, request_id
from tests.kit.conftest import LIMIT


def test_a_sane_request_id_is_echoed_and_known_inside(api):
    response = api("GET", "/state", headers={"X-Request-ID": "mine-1"})
    assert response.headers["x-request-id"] == "mine-1"
    assert response.json() == {"request_id": "mine-1", "context": "mine-1", "strange": None}


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 129, b"\xe9", "a\tb"])
def test_any_other_is_replaced(api, given):
    headers = {} if given is None else {"X-Request-ID": given}
    made = api("GET", "/state", headers=headers).headers["x-request-id"]
    assert len(made) == 32
    assert int(made, 16)


@pytest.mark.parametrize("path", ["/fails", "/nothing", "/shop/orders?limit=0", "/raises/401"])
def test_errors_have_a_request_id_too(api, path):
    assert api("GET", path, headers={"X-Request-ID": "e1"}).headers["x-request-id"] == "e1"


def test_log_records_carry_the_request_id():
    record = logging.makeLogRecord({})
    assert RequestIdFilter().filter(record)
    assert record.request_id == "-"
    token = request_id.set("r1")
    RequestIdFilter().filter(record)
    request_id.reset(token)
    assert record.request_id == "r1"


async def pieces(size):
    yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'.ljust(100)
    for _ in range(size // 100 - 1):
        yield b"x" * 100


@pytest.mark.parametrize("path", ["/shop/orders", "/stream", "/form", "/nothing"])
def test_a_body_that_says_it_is_too_large_is_refused(problem, path):
    document = problem(413, "POST", path, content=b"x" * (LIMIT + 1))
    assert document["type"] == "/problems/payload-too-large"
    assert f"{LIMIT} bytes" in document["detail"]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/shop/orders", "application/json"),
        ("/stream", "text/plain"),
        ("/form", "multipart/form-data; boundary=b"),
    ],
)
def test_a_body_that_grows_too_large_is_refused(problem, path, media_type):
    document = problem(413, "POST", path, content=pieces(LIMIT + 100), headers={"content-type": media_type})
    assert document["type"] == "/problems/payload-too-large"


def test_bodies_up_to_the_limit_and_exempt_ones_pass(api):
    assert api("POST", "/stream", content=b"x" * LIMIT).json() == LIMIT
    assert api("POST", "/stream", content=pieces(LIMIT)).json() == LIMIT
    assert api("POST", "/upload", content=pieces(50 * LIMIT)).json() == 50 * LIMIT


ORDER = b'{"item": {"kind": "stone", "weight": 2}}'


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
)
def test_json_is_understood(api, kind):
    assert api("POST", "/shop/orders", content=ORDER, headers={"content-type": kind}).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", "json", None])
def test_other_bodies_are_not(problem, kind):
    headers = {} if kind is None else {"content-type": kind}
    document = problem(415, "POST", "/shop/orders", content=ORDER, headers=headers)
    assert document["type"] == "/problems/unsupported-media-type"


def test_no_body_needs_no_type(problem):
    assert problem(422, "POST", "/shop/orders")["errors"] == [
        {"pointer": "", "detail": "The body is empty; send a JSON object with `item`."}
    ]
