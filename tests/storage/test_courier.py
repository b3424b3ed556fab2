"""What is put back of an attempt's folder, and when: against a shelf that stands where the server does, and can be made to fail."""

import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workers.link import Refused, ServerAway
from workers.storage.courier import Courier
from workers.storage.depot import Hurry
from workers.storage.outgoing import Parcel


class Shelf:
    """Takes what a depot takes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.puts: list[str] = []
        self.before_put: Callable[[str], None] = lambda name: None

    def put(self, name: str, parcel: Parcel, check: Callable[[], None]) -> None:
        self.before_put(name)
        content = b"".join(parcel.parts(check))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (parcel.size, parcel.sha256)
        self.puts.append(name)
        self.files[name] = content

    def extend(self, name: str, offset: int, part: bytes) -> int:
        here = self.files.get(name, b"")
        if offset <= len(here):
            self.files[name] = here + part[len(here) - offset :]
        return len(self.files.get(name, b""))

    def move(self, name: str, to: str) -> None:
        self.delete(to)
        for each in [each for each in self.files if each.startswith(f"{name}/")]:
            self.files[to + each.removeprefix(name)] = self.files.pop(each)

    def delete(self, name: str) -> None:
        self.files = {n: c for n, c in self.files.items() if n != name and not n.startswith(f"{name}/")}


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def courier(shelf, tmp_path):
    (tmp_path / "job").mkdir()
    return Courier(shelf, tmp_path / "job")  # type: ignore[arg-type]


def deliver(courier: Courier, *names: str, limit=lambda: None, said=None) -> bool:
    return courier.deliver(names, limit, (said if said is not None else []).append)


def test_everything_arrives_and_what_has_not_changed_is_sent_once(courier, shelf):
    (courier.folder / "log.txt").write_text("one\n")
    (courier.folder / "last.ckpt").write_bytes(b"weights")
    (courier.folder / "result.json").write_text("{}")
    assert deliver(courier, "result.json", "last.ckpt", "log.txt")
    assert shelf.files == {"log.txt": b"one\n", "last.ckpt": b"weights", "result.json": b"{}"}
    assert deliver(courier, "result.json", "last.ckpt")
    assert sorted(shelf.puts) == ["last.ckpt", "result.json"]


def test_logs_and_checkpoints_go_while_the_job_runs_and_other_files_do_not(courier, shelf):
    (courier.folder / "result.json").write_text("not yet")
    courier.start()
    (courier.folder / "log.txt").write_text("one\n")
    (courier.folder / "tiles.checkpoint").write_bytes(b"1")
    wait(lambda: set(shelf.files) == {"log.txt", "tiles.checkpoint"})
    with (courier.folder / "log.txt").open("a") as log:
        log.write("two\n")
    wait(lambda: shelf.files["log.txt"] == b"one\ntwo\n")
    courier.close()
    assert "result.json" not in shelf.files


def test_a_checkpoint_goes_from_the_server_only_once_the_result_is_there(courier, shelf):
    (courier.folder / "tiles.checkpoint").write_bytes(b"hours of work")
    assert deliver(courier)
    (courier.folder / "tiles.checkpoint").unlink()  # the job is done with it
    courier._send_what_is_new(at_once=False)
    assert "tiles.checkpoint" in shelf.files
    (courier.folder / "result.json").write_text("{}")
    there: list[bool] = []
    shelf.before_put = lambda name: there.append("tiles.checkpoint" in shelf.files)
    assert deliver(courier, "result.json")
    assert there == [True]
    assert set(shelf.files) == {"result.json"}


def test_one_that_was_pruned_goes_once_what_replaces_it_is_there(courier, shelf):
    (courier.folder / "a.ckpt").write_bytes(b"a")
    (courier.folder / "metrics.csv").write_text("step\n")
    assert deliver(courier)

    def prune(name: str) -> None:  # the job goes on while the courier sends
        if name == "metrics.csv":
            (courier.folder / "b.ckpt").write_bytes(b"b")
            (courier.folder / "a.ckpt").unlink(missing_ok=True)

    shelf.before_put = prune
    (courier.folder / "metrics.csv").write_text("step\n1\n")
    courier._due.clear()
    courier._send_what_is_new(at_once=False)
    assert {"a.ckpt", "b.ckpt"} & set(shelf.files)
    courier._due.clear()
    courier._send_what_is_new(at_once=False)
    assert set(shelf.files) == {"b.ckpt", "metrics.csv"}


def write_folder(path: Path, content: bytes) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for name in ("0.distcp", "1.distcp", "meta.pt"):
        fresh = path / f".{name}"
        fresh.write_bytes(content)
        os.replace(fresh, path / name)


def folder_on(shelf: Shelf, name: str) -> dict[str, bytes]:
    return {each.removeprefix(f"{name}/"): c for each, c in shelf.files.items() if each.startswith(f"{name}/")}


def test_a_checkpoint_that_is_a_folder_takes_its_place_whole(courier, shelf):
    write_folder(courier.folder / "last.ckpt", b"1")
    assert deliver(courier, "last.ckpt/meta.pt", "last.ckpt/0.distcp")
    assert folder_on(shelf, "last.ckpt") == dict.fromkeys(("0.distcp", "1.distcp", "meta.pt"), b"1")
    assert shelf.puts[-1] == ".arriving-last.ckpt/meta.pt"
    assert len(shelf.puts) == 3  # not once more as artifacts


def test_one_that_is_replaced_while_it_is_sent_never_arrives_mixed(courier, shelf):
    write_folder(courier.folder / "last.ckpt", b"old")
    assert deliver(courier)
    write_folder(courier.folder / "last.ckpt", b"mid")
    shelf.before_put = lambda name: name.endswith("1.distcp") and write_folder(courier.folder / "last.ckpt", b"new")
    courier._due.clear()
    courier._send_what_is_new(at_once=False)
    assert set(folder_on(shelf, "last.ckpt").values()) == {b"old"}
    assert not folder_on(shelf, ".arriving-last.ckpt")
    shelf.before_put = lambda name: None
    assert deliver(courier)
    assert set(folder_on(shelf, "last.ckpt").values()) == {b"new"}


def test_a_send_that_broke_off_leaves_nothing_in_the_next(courier, shelf):
    write_folder(courier.folder / "last.ckpt", b"A")

    def away(name: str) -> None:
        if name.endswith("meta.pt"):
            raise ServerAway("gone")

    shelf.before_put = away
    with pytest.raises(ServerAway):
        courier._send_what_is_new(at_once=True)
    (courier.folder / "last.ckpt" / "1.distcp").unlink()
    shelf.before_put = lambda name: None
    assert deliver(courier)
    assert set(folder_on(shelf, "last.ckpt")) == {"0.distcp", "meta.pt"}


def test_a_pruned_folder_goes_too(courier, shelf):
    write_folder(courier.folder / "a.ckpt", b"a")
    assert deliver(courier)
    for each in (courier.folder / "a.ckpt").iterdir():
        each.unlink()
    (courier.folder / "a.ckpt").rmdir()
    assert deliver(courier)
    assert shelf.files == {}


def test_a_name_that_the_server_cannot_take_is_left_out_and_the_rest_goes(courier, shelf):
    (courier.folder / "a\\b.ckpt").write_bytes(b"x")
    (courier.folder / os.fsdecode(b"\xff.ckpt")).write_bytes(b"x")
    (courier.folder / "last.ckpt").write_bytes(b"x")
    assert deliver(courier)
    assert set(shelf.files) == {"last.ckpt"}


def test_a_server_that_lost_count_gets_all_lines(courier, shelf):
    (courier.folder / "log.txt").write_text("one\n")
    assert deliver(courier)
    shelf.files.clear()
    (courier.folder / "log.txt").write_text("one\ntwo\n")
    assert deliver(courier)
    assert shelf.files["log.txt"] == b"one\ntwo\n"


def test_who_is_told_to_hurry_gives_up_in_time_and_says_what_kept_it(courier, shelf, monkeypatch):
    monkeypatch.setattr("workers.storage.depot.TELL_SECONDS", 0.0)

    def full(name: str) -> None:
        raise ServerAway("answered 503: No space left on device")

    shelf.before_put = full
    (courier.folder / "result.json").write_text("{}")
    stopping, said = threading.Event(), []
    threading.Timer(0.5, stopping.set).start()
    began = time.monotonic()
    assert not deliver(courier, "result.json", limit=Hurry((stopping, 0.5)), said=said)
    assert 0.9 < time.monotonic() - began < 10
    assert len(said) == 1
    assert "No space left" in said[0]


def test_a_transfer_that_takes_too_long_is_broken_off(courier, shelf):
    (courier.folder / "huge.bin").write_bytes(bytes(8 << 20))
    began = time.monotonic()
    assert not deliver(courier, "huge.bin", limit=lambda: began - 1)
    assert "huge.bin" not in shelf.files


def test_a_refusal_is_told(courier, shelf):
    def refuse(name: str) -> None:
        raise Refused(409, "The attempt does not run under this claim.")

    shelf.before_put = refuse
    (courier.folder / "result.json").write_text("{}")
    with pytest.raises(Refused, match="claim"):
        deliver(courier, "result.json")


def wait(look: Callable[[], bool], seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < until
        time.sleep(0.05)
