"""Whether a worker has the server's storage: by what is found there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.contract import STORAGE_MARK, StorageFacts
from workers.link import Refused
from workers.storage.settle import cache_bytes, obstacle, settle, spool


class Link:
    """Says where the server's storage is."""

    def __init__(self, path: Path, id: str = "storage_1") -> None:
        self.facts = StorageFacts(path=str(path), id=id)

    def storage(self) -> StorageFacts:
        return self.facts


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TIDEMILL_STORAGE", raising=False)
    folder = tmp_path / "storage"
    (folder / "jobs").mkdir(parents=True)
    (folder / STORAGE_MARK).write_text("storage_1")
    return folder


def test_the_same_folder_is_used_directly(storage):
    assert settle(Link(storage)).shared


def test_another_servers_folder_and_none_at_all_are_not(storage, tmp_path):
    assert not settle(Link(storage, "storage_2")).shared
    assert not settle(Link(tmp_path / "elsewhere")).shared
    assert "another server" in obstacle(Link(storage, "storage_2").facts)


def test_none_is_never_shared(storage, monkeypatch):
    monkeypatch.setenv("TIDEMILL_STORAGE", "none")
    assert not settle(Link(storage)).shared


def test_a_folder_that_was_named_must_be_the_servers(storage, tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMILL_STORAGE", str(storage))
    assert settle(Link(storage)).shared
    with pytest.raises(Refused, match="storage of another server"):
        settle(Link(storage, "storage_2"))
    monkeypatch.setenv("TIDEMILL_STORAGE", str(tmp_path))
    with pytest.raises(Refused, match=f"TIDEMILL_STORAGE is {tmp_path} here, and the server's is {storage}"):
        settle(Link(storage))


def test_a_link_to_the_servers_folder_is_that_folder(storage, tmp_path, monkeypatch):
    (tmp_path / "mounted").symlink_to(storage)
    monkeypatch.setenv("TIDEMILL_STORAGE", str(tmp_path / "mounted"))
    assert settle(Link(storage)).shared


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_is_not_shared(storage):
    (storage / "jobs").chmod(0o500)
    assert "may not write" in obstacle(Link(storage).facts)


@pytest.mark.parametrize("told", ["16GB", "-1", "1.5"])
def test_a_bound_that_is_no_number_of_bytes_is_refused(monkeypatch, told):
    monkeypatch.setenv("TIDEMILL_CACHE_BYTES", told)
    with pytest.raises(Refused, match=f"TIDEMILL_CACHE_BYTES is {told!r}"):
        cache_bytes()


def test_what_a_killed_worker_left_goes_with_the_next_and_a_living_ones_stays(tmp_path):
    folder = tmp_path / "spool"
    code = f"from workers.storage.settle import spool, Path; print(spool(Path({str(folder)!r})), flush=True); input()"
    left = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert left.stdout is not None
    theirs = Path(left.stdout.readline().strip())
    (theirs / "att_1.0").mkdir()
    mine = spool(folder)
    assert theirs.is_dir()
    left.kill()
    left.communicate()
    spool(folder)
    assert not theirs.exists()
    assert mine.is_dir()
