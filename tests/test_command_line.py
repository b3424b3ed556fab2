"""`python -m app` when it cannot start: exit code 1, one sentence that says why and what to do, never a traceback."""

import argparse
import asyncio
import contextlib
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from app import locks
from app.command import refuse_open_door
from app.keys import command, reaching, secret
from app.keys.operators import short_path
from app.kit.own_hosts import is_loopback
from app.locks import Holder, lock_home, locks_of
from app.settings import Settings
from app.starting import CannotStart, with_join_token
from tests.desk import Desk
from tests.house import House


def app(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def refusal(*arguments: str, **environment: str) -> str:
    """Start a server that must refuse, and return its one sentence."""
    ended = app(*arguments, **environment)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    [sentence] = ended.stderr.splitlines()
    return sentence.removeprefix("Tidemill cannot start: ")


def test_help_lists_every_setting_with_its_sentence_and_default():
    ended = app("--help")
    assert ended.returncode == 0
    for name, field in Settings.model_fields.items():
        [line] = [line for line in ended.stdout.splitlines() if line.split()[:1] == [f"TIDEMILL_{name.upper()}"]]
        assert str(field.description) in line
        assert re.search(r" \[[^\]]+\]$", line)


def test_every_setting_that_cannot_be_is_named(home):
    wrong = {"PORT": "abc", "WORKERS": "0", "ENGINE": "slurm", "DASK_SCHEDULER": "tcp:/x"}
    sentence = refusal("--home", str(home), **{f"TIDEMILL_{name}": value for name, value in wrong.items()})
    said = dict(re.findall(r"TIDEMILL_(\w+) is '([^']*)'\. [A-Z]", sentence))
    assert said == wrong
    assert not home.exists()


def test_a_flag_that_cannot_be_is_named_as_it_was_said(home):
    assert refusal("--home", str(home), "--port", "99999").startswith("--port is 99999. ")


def test_beyond_loopback_it_asks_for_insecure(home):
    sentence = refusal("--home", str(home), "--host", "0.0.0.0")
    assert "0.0.0.0" in sentence
    assert "--insecure" in sentence
    assert "TIDEMILL_AUTH=keys" in sentence
    assert not home.exists()


def test_who_asks_for_keys_may_listen_anywhere():
    refuse_open_door(Settings(host="0.0.0.0", auth="keys"), insecure=False)
    refuse_open_door(Settings(host="0.0.0.0"), insecure=True)
    with pytest.raises(CannotStart):
        refuse_open_door(Settings(host="0.0.0.0"), insecure=False)


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.1.1", False), ("example.org", False), ("localhost.example.org", False)],
)  # fmt: skip
def test_what_counts_as_loopback(host, here):
    assert is_loopback(host) is here


def test_a_taken_port_is_named(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        sentence = refusal("--home", str(home), "--port", port)
    assert f"port {port} on 127.0.0.1" in sentence
    assert "choose another --port" in sentence


def test_a_second_server_on_the_same_home_refuses(house: House):
    sentence = refusal("--home", str(house.home), "--port", "0")
    assert f"another server (pid {house.process.pid})" in sentence
    assert str(house.home) in sentence
    assert lives(house)


def lives(house: House) -> bool:
    with house.api() as api:
        return api.get("/health/live").status_code == 200


def test_a_home_that_cannot_be_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert f"{tmp_path / 'file' / 'home'} cannot be used" in refusal("--home", str(tmp_path / "file" / "home"))


def test_a_database_of_a_newer_version_is_refused(home):
    Desk(home).close()
    database = home / "tidemill.db"
    change(database, "UPDATE alembic_version SET version_num = '9999'")
    sentence = refusal("--home", str(home), "--port", "0")
    assert f"{database} is at schema '9999'" in sentence
    assert "newer version" in sentence


def test_a_file_that_is_no_database_is_refused(home):
    home.mkdir()
    (home / "tidemill.db").write_bytes(b"no database " * 1000)
    assert f"{home / 'tidemill.db'} cannot be opened as a database" in refusal("--home", str(home), "--port", "0")


def change(database: Path, sql: str) -> None:
    with sqlite3.connect(database) as db:
        db.execute(sql)
    db.close()


# ---- keys, with no server on HOME ------------------------------------------------------------------------------------


def test_the_first_key_is_made_before_the_server_starts(home):
    made = app("keys", "create", "--owner", "ada", "--scopes", "admin", "--home", str(home))
    assert made.returncode == 0, made.stderr
    (key,) = made.stdout.splitlines()
    assert re.fullmatch(r"tm_[0-9a-z]{26}_[0-9a-f]{64}", key)
    (row,) = rows(home)
    assert (row["owner"], row["scopes"]) == ("ada", '["admin"]')
    assert not [path for path in home.rglob("*") if path.is_file() and key[-64:].encode() in path.read_bytes()]
    listed = app("--home", str(home), "keys", "list")
    assert listed.stdout.split()[:7] == list(command.COLUMNS)
    assert row["id"] in listed.stdout
    assert app("keys", "revoke", row["id"], "--home", str(home)).returncode == 0
    assert rows(home) == []


def rows(home: Path) -> list[sqlite3.Row]:
    with contextlib.closing(sqlite3.connect(home / "tidemill.db")) as db:
        db.row_factory = sqlite3.Row
        return db.execute("SELECT * FROM api_key").fetchall()


def test_a_key_that_cannot_be_is_refused_in_a_sentence(home):
    ended = app("keys", "create", "--owner", "a b", "--scopes", "read,write", "--home", str(home))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "owner must match" in ended.stderr
    assert "scopes/1" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert rows(home) == []


@pytest.mark.parametrize("asked", [["list"], ["revoke", "key_x"]])
def test_a_home_without_a_database_has_no_keys_and_gets_none(home, asked):
    ended = app("keys", *asked, "--home", str(home))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"{home} has no database" in ended.stderr
    assert not home.exists()


def test_a_server_that_does_not_answer_is_named(home, monkeypatch):
    Desk(home).close()
    monkeypatch.setattr(reaching, "PATIENCE_SECONDS", 0.3)
    options = argparse.Namespace(action="list")
    with lock_home(home), pytest.raises(CannotStart, match=rf"another server \(pid {os.getpid()}\) .* does not answer"):
        command.run(options, Settings(home=home))
    command.run(options, Settings(home=home))


def test_a_keys_command_that_is_stopped_has_not_succeeded(home):
    """A server that is started, and told to stop, has: its 0 is not for a key that nobody was shown."""
    home.mkdir()
    with (
        lock_home(home),
        short_path(home) as address,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent,
        subprocess.Popen(
            [sys.executable, "-m", "app", "keys", "create", "--owner", "ada", "--scopes", "read", "--home", str(home)],
            stdout=subprocess.PIPE,
        ) as asking,
    ):
        silent.bind(address)
        silent.listen()
        silent.settimeout(30)
        with silent.accept()[0]:
            asking.terminate()
            assert (asking.wait(timeout=10), asking.stdout.read()) == (-signal.SIGTERM, b"")


@pytest.mark.parametrize("said", ["../jobs", "key_", "", "key_x?y=1", "key_x\n", "key_" + "0" * 400, "http://x/"])
def test_what_is_no_keys_id_is_not_asked_for(home, said):
    Desk(home).close()
    ended = app("keys", "revoke", said, "--home", str(home))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "is not the id of a key" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_key_given_for_its_id_is_not_repeated(home):
    Desk(home).close()
    key = secret.make("key_" + "0" * 26)
    with pytest.raises(CannotStart, match=r"^a key is not the id of a key"):
        command.run(argparse.Namespace(action="revoke", id=key), Settings(home=home))


@pytest.mark.parametrize("status", [200, 202, 307, 404, 500])
def test_nothing_but_success_is_success(status):
    async def ask():
        transport = httpx.MockTransport(lambda request: httpx.Response(status, headers={"location": "/keys"}))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await command._answer(client, "DELETE", "/keys/key_x", 204)

    with pytest.raises(CannotStart, match=f"answered DELETE /keys/key_x with {status}"):
        asyncio.run(ask())


def test_keys_leave_the_storage_alone(home, tmp_path):
    """A server on another HOME may be at work there."""
    storage = tmp_path / "storage"
    (storage / "incoming").mkdir(parents=True)
    (storage / "incoming" / "upload").write_text("half of it")
    made = app(
        "keys", "create", "--owner", "ada", "--scopes", "read", "--home", str(home), TIDEMILL_STORAGE=str(storage)
    )
    assert made.returncode == 0, made.stderr
    assert f"{home} had no database" in made.stderr
    assert [str(path.relative_to(storage)) for path in storage.rglob("*")] == ["incoming", "incoming/upload"]
    assert {path.name for path in home.iterdir()} <= {"lock", "tidemill.db", "tidemill.db-wal", "tidemill.db-shm"}
    again = app("keys", "create", "--owner", "ada", "--scopes", "read", "--home", str(home))
    assert "had no database" not in again.stderr


def test_a_database_is_its_owners_alone(home):
    """Whatever the umask, and one that an earlier version made for all to read as well."""
    database, before = home / "tidemill.db", os.umask(0)
    try:
        home.mkdir()
        Desk(home).close()
        assert mode(database) == 0o600
        database.chmod(0o644)
        desk = Desk(home)
        desk.write(lambda db: None)  # its connection is open from here on
        assert {path.name: oct(mode(path)) for path in home.glob("tidemill.db*")} == dict.fromkeys(
            ["tidemill.db", "tidemill.db-wal", "tidemill.db-shm"], "0o600"
        )
        desk.close()
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- folders that a server has to itself -----------------------------------------------------------------------------


def test_a_second_server_on_the_same_storage_refuses_and_touches_nothing(home, tmp_path):
    storage = tmp_path / "storage"
    (storage / "incoming" / "upload").mkdir(parents=True)
    with locks_of(Settings(home=tmp_path / "first", storage=storage)):
        sentence = refusal("--home", str(home), "--port", "0", TIDEMILL_STORAGE=str(storage))
    assert f"another server (pid {os.getpid()}) already runs on {storage};" in sentence
    assert "another TIDEMILL_STORAGE" in sentence
    assert (storage / "incoming" / "upload").exists()
    with locks_of(Settings(home=home, storage=home)), locks_of(Settings(home=tmp_path / "first", storage=storage)):
        pass


def test_a_server_waits_for_a_keys_command_and_for_no_other_server(home, monkeypatch):
    settings = Settings(home=home)
    with contextlib.ExitStack() as held, ThreadPoolExecutor(1) as pool:
        held.enter_context(lock_home(home, Holder.KEYS))
        timer = pool.submit(lambda: (time.sleep(0.5), held.close()))
        with locks_of(settings):
            timer.result()
    monkeypatch.setattr(locks, "KEYS_PATIENCE_SECONDS", 0.2)
    with (
        lock_home(home, Holder.KEYS),
        pytest.raises(CannotStart, match=rf"`python -m app keys` \(pid {os.getpid()}\) works on {home}"),
        locks_of(settings),
    ):
        pass
    monkeypatch.setattr(locks, "KEYS_PATIENCE_SECONDS", 3600)
    with lock_home(home), pytest.raises(CannotStart, match="another server"), locks_of(settings):
        pass


# ---- the secret that workers show ------------------------------------------------------------------------------------


def test_a_join_token_is_what_is_said_or_what_a_file_holds(tmp_path):
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    assert with_join_token(Settings(home=tmp_path)).join_token is None
    assert with_join_token(Settings(home=tmp_path, join_token="said", join_token_file=file)).join_token == "said"
    assert with_join_token(Settings(home=tmp_path, join_token="", join_token_file=file)).join_token == "from-a-file"
    assert with_join_token(Settings(home=tmp_path, join_token_file=file, auth="keys")).join_token == "from-a-file"
    assert not (tmp_path / "join-token").exists()


def test_a_server_with_keys_makes_one_and_keeps_it(tmp_path):
    first = with_join_token(Settings(home=tmp_path, auth="keys")).join_token
    assert first
    assert with_join_token(Settings(home=tmp_path, auth="keys")).join_token == first


@pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff"])
def test_a_file_without_a_join_token_is_named(home, tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CannotStart, match=re.escape(f"{file} should hold the join token")):
        with_join_token(Settings(home=home, join_token_file=file))


def test_a_join_token_that_cannot_be_is_named_and_not_shown(home):
    sentence = refusal("--home", str(home), TIDEMILL_JOIN_TOKEN="two words")
    assert sentence.startswith("TIDEMILL_JOIN_TOKEN is not usable. ")
    assert "two words" not in sentence
