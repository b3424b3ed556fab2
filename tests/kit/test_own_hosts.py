import asyncio
import socket

import httpx
import pytest
from fastapi import FastAPI

from app.kit import handlers, middleware
from app.main import create_app, own_hosts
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
    ("origin", "status"),
    [("http://127.0.0.1:8000", 200), ("http://127.0.0.1:9000", 403), ("http://127.0.0.1", 403), ("https://127.0.0.1", 403),
     ("https://tide.example", 200), ("http://tide.example:9000", 200), ("http://*", 403), ("http://127.0.0.1:x", 403)],
)  # fmt: skip
def test_another_port_of_the_address_it_listens_on_is_another_origin(origin, status):
    """Whoever else serves pages on this machine. A name that was chosen for a proxy is one's own at any port."""
    ask = asking(own_hosts=["127.0.0.1", "tide.example"], page_hosts=["tide.example", "*"])
    assert ask("POST", host="127.0.0.1:8000", origin=origin).status_code == status


def test_the_port_that_a_scheme_implies_may_be_said(ask):
    assert ask("POST", host="localhost:80", origin="http://localhost").status_code == 200
    assert ask("POST", host="localhost", origin="https://localhost:443").status_code == 200


def test_the_server_asks_for_the_port_as_well(tmp_path):
    async def ask(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000") as client:
            return await client.post("/jobs", headers={"origin": "http://127.0.0.1:9000"}, json={})

    answer = asyncio.run(ask(create_app(Settings(home=tmp_path, public_url="https://tide.example"))))
    assert answer.status_code == 403
    assert answer.json()["type"] == "/problems/origin-not-allowed"


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
