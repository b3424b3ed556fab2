"""Keys: made, shown once, listed, revoked; what is kept of them; and the two ways in for those who have none: HOME, and the join token."""

import asyncio
import contextlib
import json
import os
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import httpx_sse
import pytest

from app.callers import OPERATOR, Scope
from app.capabilities import table
from app.keys.operators import SOCKET, listening, short_path
from app.keys.schemas import KeyRequest
from app.keys.service import KeyService
from app.kit.clock import now, rfc3339
from app.kit.ids import new_id
from app.main import MAX_REPORT_BYTES
from tests.api.asking import profile, refused
from tests.api.keyring import keys
from tests.chaos.acts import free_port
from tests.desk import Desk
from tests.house import eventually, long_series
from tests.sources.packing import packed

# ---- what a key is -----------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_listed_without_its_secret(keyring, root):
    answer = root.post("/keys", json={"owner": "kim", "name": "laptop", "scopes": ["submit", "read", "read"]})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    keyring.shown.append(made["key"])
    assert (made["owner"], made["name"], made["scopes"]) == ("kim", "laptop", ["read", "submit"])
    assert (made["expires_at"], made["last_used_at"]) == (None, None)
    assert made["id"].startswith("key_")
    prefix, _, secret = made["key"].rpartition("_")
    assert prefix == "tm_" + made["id"].removeprefix("key_")
    assert len(bytes.fromhex(secret)) * 8 == 256
    known = {name: value for name, value in made.items() if name != "key"}
    assert answer.headers["location"] == f"/keys/{made['id']}"
    assert root.get(answer.headers["location"]).json() == known
    assert known in root.get("/keys?limit=200").json()["items"]
    assert secret not in root.get("/keys?limit=200").text
    assert keyring.client(made["key"]).get("/jobs").json() == {"items": [], "next": None}


def test_without_an_owner_it_is_the_callers(keyring, root):
    answer = root.post("/keys", json={"scopes": ["read"]})
    keyring.shown.append(answer.json()["key"])
    assert answer.json()["owner"] == "root"


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({}, "/scopes"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["write"]}, "/scopes/0"),
        ({"scopes": ["read"], "owner": ""}, "/owner"),
        ({"scopes": ["read"], "owner": "a b"}, "/owner"),
        ({"scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"scopes": ["read"], "expires_at": "2100-01-01"}, "/expires_at"),
        ({"scopes": ["read"], "scope": "read"}, "/scope"),
    ],
)
def test_a_key_that_cannot_be_is_refused(root, asked, pointer):
    refused(root.post("/keys", json=asked), 422, "invalid-input", pointer)


def test_a_repeated_request_makes_one_key_and_shows_it_once(keyring, root):
    body, once = {"owner": "ida", "scopes": ["read"]}, {"Idempotency-Key": "make-ida"}
    first, again = root.post("/keys", json=body, headers=once), root.post("/keys", json=body, headers=once)
    keyring.shown.append(first.json()["key"])
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == {**first.json(), "key": None}
    assert [key["owner"] for key in root.get("/keys?limit=200").json()["items"]].count("ida") == 1
    other = root.post("/keys", json={**body, "name": "other"}, headers=once)
    refused(other, 422, "idempotency-key-reused")


def test_keys_are_listed_newest_first_in_pages(keyring, root):
    made = [keyring.make(root, f"owner{i}", "read")["id"] for i in range(3)]
    first = root.get("/keys?limit=2")
    second = root.get(f"/keys?limit=2&cursor={first.json()['next']}").json()["items"]
    assert [each["id"] for each in (*first.json()["items"], *second)][:3] == made[::-1]
    assert 'rel="next"' in first.headers["link"]
    refused(root.get("/keys?cursor=x"), 422, "cursor-invalid")


# ---- taken, and no longer taken ------------------------------------------------------------------------------------


def test_a_revoked_key_ends_at_once(keyring, root):
    made = keyring.make(root, "rex", "read")
    client = keyring.client(made["key"])
    assert client.get("/jobs").status_code == 200
    assert root.delete(f"/keys/{made['id']}").status_code == 204
    refused(client.get("/jobs"), 401, "unauthorized")
    refused(root.delete(f"/keys/{made['id']}"), 404, "not-found")
    refused(root.get(f"/keys/{made['id']}"), 404, "not-found")


def test_an_admin_may_revoke_the_key_that_it_asks_with(keyring, root):
    made = keyring.make(root, "eve", "admin")
    client = keyring.client(made["key"])
    assert client.delete(f"/keys/{made['id']}").status_code == 204
    refused(client.get("/keys"), 401, "unauthorized")


def test_a_key_ends_when_it_expires(keyring, root):
    made = keyring.make(root, "may", "read", expires_at=rfc3339(now() + timedelta(seconds=2)))
    client = keyring.client(made["key"])
    assert client.get("/jobs").status_code == 200
    eventually(lambda: client.get("/jobs").status_code == 401, 5)


def test_nobody_hears_why_a_key_is_not_taken(keyring, root):
    revoked, expired = (keyring.make(root, "nil", "read", **asked) for asked in ({}, {"expires_at": soon()}))
    root.delete(f"/keys/{revoked['id']}")
    good = keyring.make(root, "nil", "read")["key"]
    wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
    unknown = good.replace(good.split("_")[1], "0" * 26)
    time.sleep(1.1)
    answers = {
        (answer.status_code, answer.text, answer.headers["www-authenticate"], tuple(sorted(answer.headers)))
        for key in (revoked["key"], expired["key"], wrong, unknown, "nonsense", good + "0", good.upper())
        for answer in [keyring.client(key).get("/jobs")]
    }
    [(status, text, scheme, _)] = answers
    assert (status, scheme, json.loads(text)["type"]) == (401, "Bearer", "/problems/unauthorized")
    assert keyring.client(good).get("/jobs").status_code == 200


def soon():
    return rfc3339(now() + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("said", "status"),
    [(["Bearer {}"], 200), (["bearer  {}"], 200), (["Basic {}"], 401), (["{}"], 401), (["Bearer"], 401), ([], 401),
     (["Bearer {}", "Bearer {}"], 401)],
)  # fmt: skip
def test_a_key_is_said_as_a_bearer_token(keyring, root, said, status):
    good = keyring.make(root, "bea", "read")["key"]
    headers = [("Authorization", text.format(good)) for text in said]
    assert httpx.get(f"{keyring.house.url}/jobs", headers=headers, trust_env=False).status_code == status


def test_a_stream_ends_with_the_key_that_opened_it(keyring, root):
    """What happens to the job after that, its reader does not hear."""
    made, other = keyring.make(root, "sue", "read"), keyring.client(keyring.make(root, "sue", "read", "submit")["key"])
    sent = other.post("/datasets?name=s.npy", content=long_series(), headers={"content-type": "application/x-npy"})
    job = other.submit(profile(window=100, series={"dataset": sent.json()["id"]}))
    told = []
    with (
        keyring.client(made["key"]) as client,
        httpx_sse.connect_sse(client, "GET", job["links"]["events"], timeout=30) as stream,
    ):
        for event in stream.iter_sse():
            if not told:
                assert root.delete(f"/keys/{made['id']}").status_code == 204
                assert other.post(job["links"]["cancel"]).status_code == 202
            told.append(event)
    assert told[0].event == "state"
    assert "end" not in [event.event for event in told]
    assert "cancelled" not in [json.loads(event.data)["data"].get("to") for event in told if event.event == "state"]
    assert other.until(job["id"], "cancelled")


def asked_in_two_halves(url, path, key, content, kind, between):
    """Send a request but for its last byte, do something, and send that. Returns the whole answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: {url.netloc.decode()}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
    with socket.create_connection((url.host, url.port), timeout=20) as connection:
        connection.sendall(f"{head}Authorization: Bearer {key}\r\nConnection: close\r\n\r\n".encode() + content[:-1])
        between()
        connection.sendall(content[-1:])
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("/jobs", json.dumps(profile()).encode(), "application/json"),
        ("/datasets", b"x\n1\n2\n3\n4\n77", "text/csv"),
        ("/sources", packed({"kiln.py": ""}), "application/zip"),
    ],
)
def test_a_request_ends_with_a_key_that_was_revoked_before_all_of_it_came(keyring, root, path, content, kind):
    owner = new_id("o")
    made, other = (
        keyring.make(root, owner, "submit", "source"),
        keyring.client(keyring.make(root, owner, "read")["key"]),
    )

    def revoke():
        eventually(lambda: root.get(f"/keys/{made['id']}").json()["last_used_at"], 5)  # it has been let in
        assert root.delete(f"/keys/{made['id']}").status_code == 204

    began = time.monotonic()
    answer = asked_in_two_halves(httpx.URL(keyring.house.url), path, made["key"], content, kind, revoke)
    assert answer.startswith("HTTP/1.1 401 "), answer
    assert "/problems/unauthorized" in answer
    assert time.monotonic() - began < 4  # nothing more is waited for
    assert other.get(path).json()["items"] == []
    good = keyring.make(root, owner, "submit", "source")["key"]
    taken = asked_in_two_halves(httpx.URL(keyring.house.url), path, good, content, kind, lambda: None)
    assert taken.startswith("HTTP/1.1 20"), taken


def test_who_waits_for_a_job_hears_nothing_once_the_key_is_revoked(keyring, root):
    made, other = (keyring.make(root, "sam", "read", "submit") for _ in range(2))
    waiting, other = keyring.client(made["key"]), keyring.client(other["key"])
    sent = other.post("/datasets?name=s.npy", content=long_series(), headers={"content-type": "application/x-npy"})
    job = other.submit(profile(window=100, series={"dataset": sent.json()["id"]}))
    wait = {"Prefer": "wait=30"}
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(waiting.get, job["links"]["self"], headers=wait)]
        eventually(lambda: root.get(f"/keys/{made['id']}").json()["last_used_at"], 5)
        answers.append(pool.submit(waiting.post, "/jobs", json=profile(), headers=wait))
        eventually(lambda: len(other.get("/jobs").json()["items"]) == 2, 5)
        assert root.delete(f"/keys/{made['id']}").status_code == 204
        assert other.post(job["links"]["cancel"]).status_code == 202
        for answer in answers:
            refused(answer.result(), 401, "unauthorized")
    assert other.until(job["id"], "cancelled")


def test_a_large_upload_without_a_key_hears_of_the_key(keyring):
    stranger, pieces = keyring.client(), (b"0" * (1 << 20) for _ in range(32))
    answer = stranger.post("/datasets?name=x.csv", content=pieces, headers={"content-type": "text/csv"})
    refused(answer, 401, "unauthorized")


def test_when_a_key_was_used_is_known_and_costs_little(keyring, root, tmp_path):
    made = keyring.make(root, "uma", "read")
    assert keyring.client(made["key"]).get("/jobs").status_code == 200
    used = eventually(lambda: root.get(f"/keys/{made['id']}").json()["last_used_at"], 5)
    assert made["created_at"] < used <= rfc3339(now())

    desk = Desk(tmp_path / "home")
    service = KeyService(desk.reader, desk.writer)

    async def often():
        created = await service.create(KeyRequest(scopes=[Scope.READ]), OPERATOR)
        key = json.loads(created.body)["key"]
        admitted = [await service.admit(key) for _ in range(200)]
        assert {one.identity.name for one in admitted} == {"operator"}
        assert {one.identity.scopes for one in admitted} == {frozenset({Scope.READ})}

    asyncio.run(often())
    desk.close()
    assert len([statement for statement in desk.statements if statement.startswith("UPDATE api_key")]) == 1


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_no_secret_is_kept_anywhere(keyring, root):
    """Neither in the database and its log, nor in any file under HOME, nor in what the server says."""
    keyring.make(root, "zoe", "read", name="kept")
    assert len(keyring.shown) > 1
    contents = {path: path.read_bytes() for path in keyring.house.home.rglob("*") if path.is_file()}
    contents[keyring.house.home.parent / "words"] = keyring.house.words().encode()
    assert any(b"zoe" in content for content in contents.values())
    for key in keyring.shown:
        secret = key.rpartition("_")[2].encode()
        assert not [
            path for path, content in contents.items() if secret in content or bytes.fromhex(secret.decode()) in content
        ]


# ---- HOME's socket ---------------------------------------------------------------------------------------------------


def over_the_socket(house, method, path, **request):
    with (
        short_path(house.home) as address,
        httpx.Client(transport=httpx.HTTPTransport(uds=address), base_url="http://localhost") as client,
    ):
        return client.request(method, path, **request)


def test_the_socket_is_its_owners_alone(keyring):
    path = keyring.house.home / SOCKET
    assert len(str(path)) > 107
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_behind_the_socket_there_are_keys_and_nothing_else(keyring, root):
    house = keyring.house
    assert over_the_socket(house, "GET", "/keys").json() == root.get("/keys").json()
    for method, path in [("GET", "/jobs"), ("POST", "/jobs"), ("GET", "/capabilities"), ("GET", "/keys/../jobs"),
                         ("GET", "/keysx"), ("GET", "/health/live"), ("POST", "/internal/workers"), ("GET", "//keys")]:  # fmt: skip
        refused(over_the_socket(house, method, path), 404, "not-found")


def test_the_command_line_goes_through_the_running_server(keyring, root):
    """Its key counts at once, and what it revokes ends at once."""
    made = keys(keyring.house, "create", "--owner", "cli", "--scopes", "read,submit", "--name", "mine", "--days", "2")
    assert made.returncode == 0, made.stderr
    (key,) = made.stdout.splitlines()
    keyring.shown.append(key)
    client = keyring.client(key)
    assert client.get("/jobs").status_code == 200
    (row,) = [row for row in root.get("/keys?limit=200").json()["items"] if row["owner"] == "cli"]
    assert (row["name"], row["scopes"]) == ("mine", ["read", "submit"])
    assert row["id"] in made.stderr
    assert key not in made.stderr
    assert rfc3339(now() + timedelta(days=1.9)) < row["expires_at"] < rfc3339(now() + timedelta(days=2))
    listed = keys(keyring.house, "list")
    assert row["id"] in listed.stdout
    assert key.rpartition("_")[2] not in listed.stdout
    assert keys(keyring.house, "revoke", row["id"]).returncode == 0
    refused(client.get("/jobs"), 401, "unauthorized")
    gone = keys(keyring.house, "revoke", row["id"])
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr == f"keys: There is no key '{row['id']}'.\n"


def test_the_capabilities_command_shows_its_key_or_says_which_it_needs(keyring, root, monkeypatch, capsys):
    made = root.post("/keys", json={"owner": "kim", "scopes": ["read"]}).json()["key"]
    keyring.shown.append(made)
    asked = ["--server", keyring.house.url]
    monkeypatch.delenv(table.KEY, raising=False)
    assert (table.main(asked), "TIDEMILL_KEY" in capsys.readouterr().err) == (1, True)
    monkeypatch.setenv(table.KEY, made)
    assert table.main(asked) == 0
    assert "| `matrix_profile` |" in capsys.readouterr().out
    assert table.main(["--server", f"http://127.0.0.1:{free_port()}"]) == 1
    assert "cannot be asked" in capsys.readouterr().err


def test_a_server_that_asks_for_no_key_has_none_to_give(api, house):
    for method, path in [("GET", "/keys"), ("POST", "/keys"), ("GET", "/keys/key_x"), ("DELETE", "/keys/key_x")]:
        request = {"json": {"owner": "me", "scopes": ["admin"]}} if method == "POST" else {}
        refused(api.request(method, path, **request), 409, "keys-not-in-use")
    assert api.get("/jobs", headers={"Authorization": "Bearer whatever"}).status_code == 200
    made = keys(house, "create", "--owner", "ada", "--scopes", "read")
    assert made.returncode == 0, made.stderr
    key_id = "key_" + made.stdout.split("_")[1]
    assert key_id in keys(house, "list").stdout
    assert keys(house, "revoke", key_id).returncode == 0


# ---- the workers' door -----------------------------------------------------------------------------------------------


def test_the_server_makes_a_join_token_and_says_where(keyring, root):
    token = keyring.house.home / "join-token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    secret = token.read_text().strip()
    assert len(bytes.fromhex(secret)) * 8 == 256
    assert str(token) in keyring.house.words()
    assert "there is no key yet" in keyring.house.words()  # nor was there when it started
    assert secret not in keyring.house.words()
    assert root.get("/capabilities").json()["engines"][0]["workers"]  # its own have it


def test_workers_show_the_join_token_and_no_key(keyring, root):
    url, token = keyring.house.url, (keyring.house.home / "join-token").read_text().strip()
    for headers in ({}, {"Authorization": f"Bearer {keyring.shown[0]}"}, {"Authorization": f"Bearer {token}x"}):
        answer = httpx.post(f"{url}/internal/workers", json={}, headers=headers, trust_env=False)
        refused(answer, 401, "worker-not-admitted")
    answer = httpx.post(
        f"{url}/internal/workers", json={}, headers={"Authorization": f"Bearer {token}"}, trust_env=False
    )
    assert answer.status_code != 401
    refused(keyring.client(token).get("/jobs"), 401, "unauthorized")


def begun(keyring, path, length, *more):
    """The beginning of the answer to a request of which only the head and a little of the body were sent."""
    url = httpx.URL(keyring.house.url)
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: {url.netloc.decode()}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    with socket.create_connection((url.host, url.port), timeout=10) as connection:
        connection.sendall("\r\n".join([*head, *more, "", ""]).encode())
        if not any(line.startswith("Expect") for line in more):
            connection.sendall(b"[" * 1000)
        answer = ""
        while not answer.partition("\r\n\r\n")[2] and not answer.startswith("HTTP/1.1 100 "):
            answer += connection.recv(1000).decode()
        return answer


@pytest.mark.parametrize("shown", [[], ["Authorization: Bearer wrong"]])
@pytest.mark.parametrize("path", ["/internal/workers", "/internal/attempts/att_x/claim", "/internal/nothing"])
def test_who_shows_no_join_token_has_no_body_read(keyring, root, path, shown):
    answer = begun(keyring, path, 60_000_000, *shown)
    assert answer.startswith("HTTP/1.1 401 ")
    assert "/problems/worker-not-admitted" in answer


def test_what_workers_report_has_a_limit_whatever_they_are_called(keyring, root):
    token = (keyring.house.home / "join-token").read_text().strip()
    more = [f"Authorization: Bearer {token}", "Expect: 100-continue"]
    for path in ("/internal/workers/files/report", "/internal/workers/files/leave", "/internal/attempts/files/claim"):
        assert begun(keyring, path, MAX_REPORT_BYTES + 1, *more).startswith("HTTP/1.1 413 ")


def test_a_stale_socket_is_replaced_and_none_is_left(tmp_path):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as left, contextlib.chdir(tmp_path):
        left.bind(SOCKET)
    assert (tmp_path / SOCKET).exists()
    with listening(tmp_path), short_path(tmp_path) as address, socket.socket(socket.AF_UNIX) as client:
        client.connect(address)
    assert os.listdir(tmp_path) == []
