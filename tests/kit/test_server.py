"""What only a real server and a real socket can show."""

import json
import logging
import socket
import time

import httpx
import pytest

from tests.kit.conftest import LIMIT


def url(server, path):
    return f"http://{server[0]}:{server[1]}{path}"


def exchange(server, *parts):
    with socket.create_connection(server, timeout=5) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def problem_in(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    return json.loads(body)


def test_a_500_tells_nothing_and_is_logged_once(server, caplog):
    with caplog.at_level(logging.INFO):
        response = httpx.get(url(server, "/fails"), headers={"X-Request-ID": "here"})
    assert response.status_code == 500
    assert response.json()["type"] == "/problems/internal"
    assert "42" not in response.text
    assert response.headers["x-request-id"] == "here"
    assert [record.name for record in caplog.records if record.exc_info] == ["app.kit.handlers"]
    assert not [record for record in caplog.records if record.name == "uvicorn.error"]


def test_a_failure_halfway_breaks_the_connection(server, caplog):
    with pytest.raises(httpx.RemoteProtocolError), httpx.stream("GET", url(server, "/fails-halfway")) as response:
        assert "42" not in response.read().decode()
    assert [record.name for record in caplog.records if record.exc_info] == ["app.kit.handlers"]


def test_413_reaches_a_client_that_sends_everything_first(server):
    size = 20_000_000
    head = f"POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()
    answer = exchange(server, head, b"x" * size)
    assert problem_in(answer)["status"] == 413


def test_413_reaches_a_client_that_streams(server):
    def body():
        for _ in range(2000):
            yield b"x" * 10_000

    response = httpx.post(url(server, "/stream"), content=body())
    assert response.status_code == 413
    assert response.json()["type"] == "/problems/payload-too-large"
    json_response = httpx.post(
        url(server, "/shop/orders"), content=body(), headers={"content-type": "application/json"}
    )
    assert json_response.status_code == 413


def test_413_comes_at_once_to_a_client_that_asks_before_sending(server):
    start = time.monotonic()
    head = f"POST /stream HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {LIMIT + 1}\r\n\r\n".encode()
    answer = exchange(server, head)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert problem_in(answer)["status"] == 413
    assert time.monotonic() - start < 2


def test_a_connection_lives_on_after_an_ordinary_problem(server):
    with httpx.Client() as client:
        assert client.get(url(server, "/nothing")).status_code == 404
        assert client.get(url(server, "/state")).status_code == 200
