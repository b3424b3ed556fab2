import asyncio

import httpx
import pytest
from fastapi import FastAPI

from app.kit import handlers, middleware


@pytest.fixture(scope="module")
def ask():
    app = FastAPI()
    handlers.install(app)
    middleware.install(app, max_body_bytes=10, own_hosts=["tide.example"])

    @app.api_route("/", methods=["GET", "POST"])
    async def answer() -> int:
        return 1

    def ask(method, **headers):
        async def send():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
                return await client.request(method, "/", headers=headers)

        return asyncio.run(send())

    return ask


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "tide.example", "TIDE.example.:1"],
)
def test_it_answers_under_its_own_names(ask, host):
    assert ask("GET", host=host).status_code == 200
    assert ask("POST", host=host, origin=f"http://{host}").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "10.0.0.1", "localhost.evil", "[", "a b", ""]
)
def test_it_answers_under_no_other(ask, host):
    answer = ask("GET", host=host)
    assert answer.status_code == 421
    assert answer.json()["type"] == "/problems/host-not-allowed"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9", "http://[", ""])
def test_pages_from_elsewhere_may_look_but_change_nothing(ask, origin):
    answer = ask("POST", host="127.0.0.1:8000", origin=origin)
    assert answer.status_code == 403
    assert answer.json()["type"] == "/problems/origin-not-allowed"
    assert ask("GET", host="127.0.0.1:8000", origin=origin).status_code == 200


def test_a_proxy_that_rewrites_the_host_does_no_harm(ask):
    assert ask("POST", host="127.0.0.1:8000", origin="https://tide.example").status_code == 200
