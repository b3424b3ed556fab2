"""Uploading, looking at and deleting packages of code; off unless allowed; and that what is refused leaves nothing behind."""

import asyncio
import hashlib

import httpx
import pytest

from app.kit.ids import new_id
from app.main import create_app
from app.services import build
from app.settings import Settings
from tests.api.asking import refused
from tests.house import eventually
from tests.sources.packing import link, packed, wheel

ZIP = {"content-type": "application/zip"}
LIMIT = 1 << 20
"""The house's TIDEMILL_MAX_SOURCE_BYTES."""


@pytest.fixture
def fresh():
    """A package that no other test has sent."""
    return packed({"mill/__init__.py": f"name = {new_id('')!r}", "kiln.py": ""})


@pytest.fixture
def nothing_left(house):
    def files():
        return sorted([*(house.home / "sources").iterdir(), *(house.home / "incoming").iterdir()])

    before = files()
    yield
    eventually(lambda: files() == before, 5)


def test_a_raw_zip_becomes_a_source(api, house, fresh):
    answer = api.post("/sources?name=mine.zip", content=fresh, headers=ZIP)
    assert answer.status_code == 201, answer.text
    source = answer.json()
    assert answer.headers["location"] == f"/sources/{source['id']}"
    assert source == {
        "id": source["id"],
        "name": "mine.zip",
        "format": "zip",
        "bytes": len(fresh),
        "sha256": hashlib.sha256(fresh).hexdigest(),
        "modules": ["kiln", "mill"],
        "created_at": source["created_at"],
    }
    assert source["id"].startswith("src_")
    assert api.get(answer.headers["location"]).json() == source
    assert api.get("/sources?limit=1").json()["items"] == [source]
    package = house.home / "sources" / source["id"] / "package"
    assert {str(path.relative_to(package)) for path in package.rglob("*.py")} == {"mill/__init__.py", "kiln.py"}
    assert not list((house.home / "incoming").iterdir())


def test_a_wheel_in_a_form_becomes_a_source(api):
    content = wheel({"mill/__init__.py": f"{new_id('')!r}"})
    answer = api.post("/sources", files={"file": ("mill-1.2-py3-none-any.whl", content)})
    assert answer.status_code == 201, answer.text
    source = answer.json()
    assert (source["name"], source["format"], source["modules"]) == ("mill-1.2-py3-none-any.whl", "wheel", ["mill"])


def test_the_same_bytes_are_the_same_source(api, fresh):
    first = api.post("/sources", files={"file": ("one.zip", fresh)})
    again = api.post("/sources", files={"file": ("two.zip", fresh)})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    renamed = api.post("/sources", files={"file": ("two.zip", fresh)}, data={"name": "mine"})
    assert (renamed.status_code, renamed.json()) == (200, {**first.json(), "name": "mine"})


def test_a_repeated_upload_under_a_key_is_answered_once(api, fresh):
    key = {"Idempotency-Key": new_id("")}
    first = api.post("/sources", content=fresh, headers={**ZIP, **key})
    again = api.post("/sources", content=fresh, headers={**ZIP, **key})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = api.post("/sources", content=packed({"other.py": ""}), headers={**ZIP, **key})
    refused(other, 422, "idempotency-key-reused")
    broken, key = packed({"words.txt": ""}), {"Idempotency-Key": new_id("")}
    refused(api.post("/sources", content=broken, headers={**ZIP, **key}), 422, "unfit-source")
    assert api.post("/sources", content=fresh, headers={**ZIP, **key}).status_code == 200


def test_sources_are_listed_newest_first_in_pages(api):
    made = [api.post("/sources", content=packed({f"m{new_id('')}.py": ""}), headers=ZIP).json()["id"] for _ in range(3)]
    first = api.get("/sources?limit=2")
    second = api.get(f"/sources?limit=2&cursor={first.json()['next']}").json()["items"]
    assert [each["id"] for each in (*first.json()["items"], *second)][:3] == made[::-1]
    assert 'rel="next"' in first.headers["link"]


def test_a_source_is_deleted_with_its_files(api, house, fresh):
    path = api.post("/sources", content=fresh, headers=ZIP).headers["location"]
    assert api.delete(path).status_code == 204
    refused(api.get(path), 404, "not-found")
    refused(api.delete(path), 404, "not-found")
    assert not (house.home / path.lstrip("/")).exists()
    assert api.post("/sources", content=fresh, headers=ZIP).status_code == 201


KILN = """
def burn(fabric, heat):
    import kiln
    import torch
    weight = torch.ones(1, requires_grad=True)
    fabric.log("heat", heat)
    while True:
        fabric.backward(weight * heat)
"""


def no_source(answer):
    """Whatever else is wrong: of what cannot be imported, no name is known either."""
    return "/params/source" in {error["pointer"] for error in refused(answer, 422, "invalid-input")["errors"]}


def test_a_source_is_importable_in_its_own_jobs_ranks_and_stays_while_they_need_it(api, fresh):
    def body(source):
        config = {"fabric": {"accelerator": "cpu", "devices": 1}}
        config["function"] = {"call_path": "kiln.burn", "kwargs": {"heat": 42.0}}
        return {"kind": "training", "params": {"mode": "fabric", "config": config, "source": source}}

    path = api.post("/sources", content=packed({"kiln.py": KILN + new_id("# ")}), headers=ZIP).headers["location"]
    other = api.post("/sources", content=packed({"other.py": KILN}), headers=ZIP).json()["id"]
    for stranger in (None, other):
        refused(api.post("/jobs", json=body(stranger)), 422, "invalid-input", "/params/config/function/call_path")
    assert no_source(api.post("/jobs", json=body("src_none")))
    job = api.submit(body(path.rpartition("/")[2]))
    refused(api.delete(path), 409, "source-in-use")
    told = eventually(lambda: [each for each in api.events(job["id"]) if each["type"] == "metric"], 90)
    assert (told[0]["data"]["name"], told[0]["data"]["value"]) == ("heat", 42.0)
    refused(api.delete(path), 409, "source-in-use")
    api.post(job["links"]["cancel"])
    api.until(job["id"], "cancelled", seconds=30)
    assert api.delete(path).status_code == 204
    assert no_source(api.post(f"/jobs/{job['id']}/retry"))


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"print('hello')", "not a zip"),
        (packed({"../../up.py": ""}), "leads out"),
        (packed({"/abs.py": ""}), "absolute"),
        (link(), "symbolic link"),
        (packed({"torch/__init__.py": ""}), "would hide an installed module"),
        (packed({"app.py": ""}), "would hide Tidemill's own module"),
        (packed({"mill.py": "", "zeros": bytes(32 << 20)}), "unpacks to more than"),
    ],
)
def test_what_is_no_package_is_refused(api, content, words):
    document = refused(api.post("/sources", content=content, headers=ZIP), 422, "unfit-source", "/file")
    assert words in document["detail"]


@pytest.mark.usefixtures("nothing_left")
def test_what_is_too_large_or_no_archive_at_all(api, fresh):
    document = refused(api.post("/sources", content=bytes(LIMIT + 1), headers=ZIP), 413, "payload-too-large")
    assert str(LIMIT) in document["detail"]
    answer = api.post("/sources", content=fresh, headers={"content-type": "text/csv"})
    refused(answer, 415, "unsupported-media-type")
    assert "application/zip" in answer.headers["accept"]
    refused(api.post("/sources", files={"other": ("a.zip", fresh)}), 422, "invalid-input")
    refused(
        api.post("/sources", files={"file": ("a.zip", fresh)}, data={"header": "true"}), 422, "invalid-input", "/header"
    )
    refused(api.post("/sources?header=true", content=fresh, headers=ZIP), 422, "invalid-input", "/query/header")


def test_it_is_off_unless_the_operator_allows_it(tmp_path):
    settings = Settings(home=tmp_path / "home", _env_file=None)
    app = create_app(settings)
    app.state.services = build(settings)

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/sources", content=b"never read", headers=ZIP)

    document = refused(asyncio.run(ask()), 403, "source-upload-off")
    assert "TIDEMILL_ALLOW_SOURCE_UPLOAD=true" in document["detail"]
