import asyncio
import socket

import httpx
import pytest
from fastapi import FastAPI

from app.kit import handlers, middleware
from app.main import own_hosts
from app.settings import Settings


def asking(**options):
    app = FastAPI()
    handlers.install(app)
    middleware.install(app, max_body_bytes=10, **options)

    @app.api_route("/", methods=["GET", "POST"])
    async def answer() -> int:
        return 1

    def ask(method, **headers):
        async def send():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
                return await client.request(method, "/", headers=headers)

        return asyncio.run(send())

    return ask


@pytest.fixture(scope="module")
def ask():
    return asking(own_hosts=["tide.example"])


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


@pytest.mark.parametrize(
    ("host", "status"),
    [("10.1.2.3:8000", 200), ("[fd00::1]:8000", 200), ("localhost", 200), ("tide.example", 200), ("evil.example", 421),
     ("10.1.2.3.evil.example", 421)],
)  # fmt: skip
def test_beyond_loopback_any_address_will_do_and_still_no_foreign_name(host, status):
    assert asking(own_hosts=["tide.example"], any_address=True)("GET", host=host).status_code == status


def test_a_star_is_any_name_and_pages_of_others_still_change_nothing():
    ask = asking(own_hosts=["*", "tide.example"])
    assert ask("POST", host="who.example", origin="http://who.example").status_code == 200
    assert ask("POST", host="who.example", origin="http://tide.example").status_code == 200
    assert ask("POST", host="who.example", origin="http://evil.example").status_code == 403


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({}, {"127.0.0.1"}),
        ({"public_url": "https://tide.example:1"}, {"127.0.0.1", "tide.example"}),
        ({"allowed_hosts": "a.example, b.example"}, {"127.0.0.1", "a.example", "b.example"}),
        ({"host": "0.0.0.0"}, {"0.0.0.0", socket.gethostname()}),
        ({"host": "tide.example", "allowed_hosts": ""}, {"tide.example", socket.gethostname()}),
    ],
)
def test_its_names_are_those_that_the_settings_say(said, names):
    assert set(own_hosts(Settings(**said))) == names
