"""A join that was ended goes on from what it had saved."""

import os

import numpy as np
import pytest

from tests.matrix_profile.hard import with_
from tests.tiles.checkpoints import GAP, PROBLEMS, SPOILT, M, all_checkpoints
from tests.tiles.conftest import SlowHands, assert_true
from workers.matrix_profile.tiles import checkpoint, saved
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.checkpoint import Store
from workers.matrix_profile.tiles.hands import ThreadHands
from workers.matrix_profile.tiles.join import join
from workers.reporting import Silent


def same(one, other):
    for name in ("distances", "indices", "left", "right"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("case", PROBLEMS)
def test_from_any_checkpoint_on_the_result_is_the_same_to_the_last_bit(every_tile, monkeypatch, tmp_path, case):
    problem = PROBLEMS[case]
    whole, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    for number, path in enumerate(checkpoints):
        hands = SlowHands()
        joined = join(problem, hands, Silent(), Store(tmp_path / "next" / "none.npz", [path]))
        assert joined.resumed == number
        assert len(hands.computed) == whole.tiles - number == len(set(hands.computed))
        same(joined.profile, whole.profile)
        if whole.other is not None:
            same(joined.other, whole.other)


def test_so_it_is_with_the_kernel_and_threads(every_tile, monkeypatch, tmp_path):
    values = np.random.default_rng(2).standard_normal(700).cumsum()
    problem = Problem(values, None, 20, True)
    whole, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    for path in checkpoints[:: len(checkpoints) // 5]:
        joined = join(problem, ThreadHands(2), Silent(), Store(tmp_path / "new.npz", [path]))
        np.testing.assert_array_equal(joined.profile.distances, whole.profile.distances)


def test_an_attempt_that_was_ended_midway(every_tile, tmp_path, listener):
    class Ending(SlowHands):
        def each(self, tiles, work):
            for number, arrived in enumerate(super().each(tiles, work)):
                if number == 5:
                    raise ConnectionError("the worker is gone")
                yield arrived

    problem, first = PROBLEMS["self, normalised"], tmp_path / "first.npz"
    with pytest.raises(ConnectionError):
        join(problem, Ending(), listener, Store(first))
    assert not [each for each in tmp_path.iterdir() if each != first]
    joined = join(problem, SlowHands(), listener, Store(tmp_path / "second.npz", [tmp_path / "none.npz", first]))
    assert joined.resumed == 5
    assert any("5 of" in line for line in listener.logs)
    assert_true(joined.profile, GAP, M)


@pytest.mark.parametrize("case", SPOILT)
def test_what_is_no_whole_checkpoint_of_this_join_is_passed_over(every_tile, monkeypatch, tmp_path, listener, case):
    problem = PROBLEMS["self, normalised"]
    whole, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    good, newer = checkpoints[3], checkpoints[9]
    SPOILT[case](newer)
    os.utime(good, (1e9, 1e9))
    joined = join(problem, SlowHands(), listener, Store(tmp_path / "new.npz", [good, newer]))
    assert joined.resumed == 3
    assert any("passing over the checkpoint 9.npz" in line for line in listener.logs)
    same(joined.profile, whole.profile)


@pytest.mark.parametrize("change", ["values", "m", "normalize", "b"])
def test_a_checkpoint_of_another_problem_is_none_of_ours(every_tile, monkeypatch, tmp_path, change):
    _, checkpoints = all_checkpoints(PROBLEMS["self, normalised"], tmp_path, monkeypatch)
    other = {
        "values": Problem(with_(GAP, 0, 0.123), None, M, True),
        "m": Problem(GAP, None, M + 1, True),
        "normalize": Problem(GAP, None, M, False),
        "b": Problem(GAP, GAP, M, True),
    }[change]
    assert join(other, SlowHands(), Silent(), Store(tmp_path / "new.npz", checkpoints)).resumed == 0


def test_the_newest_is_taken(every_tile, monkeypatch, tmp_path):
    problem = PROBLEMS["AB, plain"]
    _, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    for number, path in enumerate(checkpoints):
        os.utime(path, (1e9 + number, 1e9 + number))
    assert join(problem, SlowHands(), Silent(), Store(tmp_path / "new.npz", checkpoints[:8])).resumed == 7


@pytest.fixture
def written(monkeypatch, small_tiles, tmp_path):
    """A join by a clock of its own, told what a tile and a checkpoint take in seconds. Returns how many tiles it had, and
    when checkpoints were written, at which shares of the cells."""

    def by(tile_seconds, checkpoint_seconds):
        told, clock = [], [100.0]

        def write(path, about, *rest):
            told.append((clock[0], about["coverage"]))
            clock[0] += checkpoint_seconds

        def order(tiles):
            for tile in tiles:
                clock[0] += tile_seconds
                yield tile

        monkeypatch.setattr(saved, "write", write)
        monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
        series = np.random.default_rng(1).standard_normal(400)
        joined = join(Problem(series, None, M, True), SlowHands(order), Silent(), Store(tmp_path / "a.npz"))
        return joined.tiles, *np.array(told).T

    return by


def test_checkpoints_are_as_rare_as_they_are_dear(written):
    tiles, times, shares = written(0.5, 0.02)
    assert tiles > 50
    assert (times[0], shares[0]) == (100.0, 0.0), "the first one at once"
    assert np.diff(times).min() >= 0.1, "five times 0.02 s"
    assert np.diff(shares).min() >= 0.015
    assert 20 < len(written(10.0, 0.02)[1]) <= 67


def test_however_dear_no_more_than_a_few_percent_are_left_unkept(written):
    tiles, _, shares = written(0.001, 30.0)
    assert np.diff([*shares, 1.0]).max() < 0.03 + 2 / tiles
    assert len(shares) <= 1 + 1 / 0.03


def test_a_full_disk_costs_the_checkpoint_not_the_join(monkeypatch, every_tile, tmp_path, listener):
    def full(*_args, **_kw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saved.np, "savez", full)
    joined = join(PROBLEMS["self, normalised"], SlowHands(), listener, Store(tmp_path / "a.npz"))
    assert_true(joined.profile, GAP, M)
    assert any("No space left" in line for line in listener.logs)
    assert not list(tmp_path.iterdir())
