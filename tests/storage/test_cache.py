"""The cache of fetched files: by hash, bounded, never trusted when it was changed."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.storage.cache import Cache, Damaged


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Shop:
    """Where a cache fetches from; it counts."""

    def __init__(self) -> None:
        self.fetched: list[bytes] = []

    def write(self, content: bytes) -> Callable[[Callable[[bytes], None]], None]:
        def write(take: Callable[[bytes], None]) -> None:
            self.fetched.append(content)
            for start in range(0, len(content), 7):
                take(content[start : start + 7])

        return write

    def place(self, cache: Cache, content: bytes, target: Path) -> bool:
        return cache.place(digest(content), len(content), target, self.write(content))


@pytest.fixture
def shop() -> Shop:
    return Shop()


def kept(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_a_file_is_fetched_once_and_is_read_only(tmp_path, shop):
    cache = Cache(tmp_path / "cache", 1000)
    assert [shop.place(cache, b"a series", tmp_path / "one" / str(i)) for i in range(3)] == [False, True, True]
    assert shop.fetched == [b"a series"]
    assert (tmp_path / "one" / "2").read_bytes() == b"a series"
    assert (tmp_path / "one" / "2").stat().st_mode & 0o222 == 0


def test_a_file_that_a_job_changed_is_fetched_again(tmp_path, shop):
    cache = Cache(tmp_path / "cache", 1000)
    shop.place(cache, b"a series", tmp_path / "first")
    os.chmod(tmp_path / "first", 0o644)
    (tmp_path / "first").write_bytes(b"a sErIEs")  # through the link: the cache has the same file
    assert not shop.place(cache, b"a series", tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == b"a series"


def test_what_came_damaged_is_neither_kept_nor_placed(tmp_path, shop):
    cache = Cache(tmp_path / "cache", 1000)
    with pytest.raises(Damaged):
        cache.place(digest(b"right"), 5, tmp_path / "there", shop.write(b"wrong"))
    assert kept(tmp_path / "cache") == set()
    assert not (tmp_path / "there").exists()


def test_a_file_that_does_not_fit_is_placed_and_not_kept(tmp_path, shop):
    cache = Cache(tmp_path / "cache", 10)
    assert not shop.place(cache, b"x" * 11, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == b"x" * 11
    assert kept(tmp_path / "cache") == set()


def test_what_is_in_use_is_not_thrown_away_for_what_is_new(tmp_path, shop):
    cache = Cache(tmp_path / "cache", 10)
    shop.place(cache, b"a" * 8, tmp_path / "used")
    shop.place(cache, b"b" * 8, tmp_path / "new")
    assert kept(tmp_path / "cache") == {digest(b"a" * 8)}
    (tmp_path / "used").unlink()
    shop.place(cache, b"b" * 8, tmp_path / "newer")
    assert kept(tmp_path / "cache") == {digest(b"b" * 8)}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 25)), max_size=25))
def test_it_never_holds_more_than_it_may_and_always_gives_the_right_bytes(tmp_path_factory, most, asked):
    folder, shop = tmp_path_factory.mktemp("cache"), Shop()
    cache, used = Cache(folder / "files", most), []
    for i, (seed, size) in enumerate(asked):
        content = bytes([seed]) * size
        target = folder / "used" / str(i)
        shop.place(cache, content, target)
        assert target.read_bytes() == content
        assert sum(each.stat().st_size for each in (folder / "files").iterdir()) <= most
        # The least lately used ones went: what was placed just now stays if it fits at all beside what is in use.
        there = {each.stat().st_ino: each.stat() for each in (folder / "files").iterdir()}
        in_use = sum(status.st_size for status in there.values() if status.st_nlink > 1)
        assert digest(content) in kept(folder / "files") or in_use + size > most
        used.append(target)
        if seed % 2:
            used.pop(0).unlink()
