"""Threads compute tiles: what is found comes back as it is done, errors come out, and closing stops them."""

import threading
import time
from contextlib import closing

import numpy as np
import pytest

from workers.matrix_profile.tiles import hands as module
from workers.matrix_profile.tiles.hands import ThreadHands
from workers.matrix_profile.tiles.tile import Found, Tile

TILES = [Tile(number, 1, 1, 1) for number in range(20)]
NOTHING = Found(*(np.empty(0, dtype) for dtype in (int, float, int) * 2))


def replace_compute(monkeypatch, compute):
    monkeypatch.setattr(module, "compute", compute)


def tile_threads():
    return [each for each in threading.enumerate() if each.name.startswith("tile")]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_tile_comes_back_once_with_what_was_found_in_it(monkeypatch, threads):
    founds = {tile: Found(np.array([tile.row]), *([np.empty(0)] * 5)) for tile in TILES}
    replace_compute(monkeypatch, lambda work, stop: founds[work])
    arrived = list(ThreadHands(threads).each(TILES, lambda tile: tile))
    assert sorted(tile.row for tile, _ in arrived) == list(range(20))
    assert all(found is founds[tile] for tile, found in arrived)
    assert not tile_threads()


def test_work_is_asked_for_when_a_tile_is_handed_over(monkeypatch):
    """So that each is sent with what is known by then, and memory holds a few of them."""
    asked, askers = [], set()

    def work(tile):
        asked.append(tile)
        askers.add(threading.current_thread())
        return tile

    replace_compute(monkeypatch, lambda work, stop: NOTHING)
    with closing(ThreadHands(2).each(TILES, work)) as arriving:
        for number, _ in enumerate(arriving, start=1):
            assert len(asked) <= number + 2
    assert asked == TILES
    assert askers == {threading.current_thread()}


def test_as_many_run_at_once_as_there_are_threads(monkeypatch):
    together = threading.Barrier(3, timeout=10)
    replace_compute(monkeypatch, lambda work, stop: (together.wait(), NOTHING)[1])
    assert len(list(ThreadHands(3).each(TILES[:18], lambda tile: tile))) == 18


def test_what_goes_wrong_in_a_thread_comes_out_and_stops_the_others(monkeypatch):
    def compute(tile, stop):
        if tile.row == 3:
            raise MemoryError("no room for tile 3")
        while tile.row > 3 and not stop[0]:
            time.sleep(0.001)
        return NOTHING

    replace_compute(monkeypatch, compute)
    with pytest.raises(MemoryError, match="tile 3"):
        list(ThreadHands(2).each(TILES, lambda tile: tile))
    assert not tile_threads()


def test_what_goes_wrong_in_asking_for_work_stops_the_threads(monkeypatch):
    def work(tile):
        if tile.row == 5:
            raise ValueError("no work")
        return tile

    replace_compute(monkeypatch, lambda work, stop: NOTHING)
    with pytest.raises(ValueError, match="no work"):
        list(ThreadHands(2).each(TILES, work))
    assert not tile_threads()


def test_closing_early_stops_what_runs(monkeypatch):
    started = []

    def compute(tile, stop):
        started.append(tile)
        while tile.row > 0 and not stop[0]:
            time.sleep(0.001)
        return NOTHING if tile.row == 0 else None

    replace_compute(monkeypatch, compute)
    arriving = ThreadHands(2).each(TILES, lambda tile: tile)
    assert next(arriving)[0] == TILES[0]
    arriving.close()
    assert not tile_threads()
    assert len(started) <= 3


def test_the_kernel_itself_stops_within_a_moment():
    from workers.matrix_profile.tiles.best import Best, Problem

    values = np.random.default_rng(0).standard_normal(40_000)
    best = Best.none(Problem(values, None, 100, True))
    tiles = [Tile(0, 500, 26, 100), Tile(0, 20_000, 200, 15_000), Tile(0, 20_000, 15_200, 15_000)]
    arriving = ThreadHands(2).each(tiles, best.work)
    next(arriving)
    started = time.monotonic()
    arriving.close()
    assert time.monotonic() - started < 1.0
    assert not tile_threads()
