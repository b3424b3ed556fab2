"""What an attempt computed in tiles before it was lost, the next one does not compute again, and ends with the same answer."""

import json
import pickle
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.matrix_profile.conftest import Heard
from workers.contract import call_by_name
from workers.matrix_profile import ground, pan_length, radii
from workers.matrix_profile.tiles import grid
from workers.matrix_profile.tiles.hands import ThreadHands
from workers.operations import OPERATIONS

RNG = np.random.default_rng(3)
WALKS = RNG.standard_normal((5, 1500)).cumsum(axis=1)
WALKS[1, 700:710] = np.nan
JOBS = {
    "mpdist": ({"a": [WALKS[0]], "b": [WALKS[1]]}, {"window": 40}),
    "consensus_motif": ({"series": list(WALKS)}, {"window": 40}),
    "pan_profile": ({"series": [WALKS[1]]}, {"min_window": 20, "max_window": 60, "step": 4}),
}
KEPT = {"mpdist": "tiles.checkpoint", "consensus_motif": "consensus.checkpoint", "pan_profile": "pan.checkpoint"}


class Lost(Exception):
    """The worker is no more."""


@dataclass
class Mortal:
    """Hands that compute so many tiles, each sent to them as to another machine, and then are lost."""

    lives: int
    computed: int = 0

    def each(self, tiles, work):
        for tile, found in ThreadHands(1).each(tiles, lambda tile: pickle.loads(pickle.dumps(work(tile)))):
            if self.computed == self.lives:
                raise Lost
            self.computed += 1
            yield tile, found


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(grid, "LEAST_CELLS", 1 << 16)
    monkeypatch.setattr(pan_length, "WHOLE_CELLS", 1 << 18)
    monkeypatch.setattr(radii, "WHOLE_CELLS", 1 << 16)
    monkeypatch.setattr("workers.matrix_profile.tiles.checkpoint.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("workers.matrix_profile.tiles.checkpoint.TIMES_ITS_COST", 0)
    monkeypatch.setattr("workers.matrix_profile.tiles.checkpoint.LEAST_SHARE", 0.0)


@pytest.fixture
def attempt(warm, task, monkeypatch, tmp_path):
    """Run one attempt: `attempt(kind, number, lives, earlier=[numbers])` gives its answer, or None, and its hands."""

    def start(kind, number, lives, earlier=(), **asked):
        series, params = JOBS[kind]
        told = task(kind, series, plan={"implementation": "tiles"}, **params, **asked)
        folders = [tmp_path / f"attempt{n}" for n in (number, *earlier)]
        folders[0].mkdir()
        told |= {"folder": str(folders[0]), "earlier": [str(each) for each in folders[1:]]}
        hands, answer = Mortal(lives), None
        monkeypatch.setattr(ground.Ground, "hands", lambda self: hands)
        with suppress(Lost):
            answer = call_by_name(OPERATIONS[kind].run, told, Heard())
        return answer, hands

    return start


def said(answer):
    return {name: value for name, value in answer["summary"].items() if name != "verification"}


@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 2.0}], ids=str)
@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_no_tile_is_computed_twice(attempt, tmp_path, kind, share, asked):
    whole, hands = attempt(kind, 0, 10**6, **asked)
    total = hands.computed
    assert total > 20
    lives = int(share * total)
    answer, hands = attempt(kind, 1, lives, **asked)
    assert answer is None
    assert (tmp_path / "attempt1" / KEPT[kind]).exists()
    answer, hands = attempt(kind, 2, 10**6, [1], **asked)
    assert hands.computed == total - lives
    assert answer["provenance"]["tiles_resumed"] == lives
    assert answer["provenance"]["tiles"] == total
    assert said(answer) == said(whole)
    one, other = (dict(np.load(tmp_path / f"attempt{number}" / "result.npz")) for number in (0, 2))
    for name, values in one.items():
        np.testing.assert_array_equal(other[name], values)
    assert not (tmp_path / "attempt2" / KEPT[kind]).exists()
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("kind", JOBS)
def test_a_third_attempt_goes_on_from_the_second(attempt, kind):
    whole, hands = attempt(kind, 0, 10**6)
    total = hands.computed
    attempt(kind, 1, total // 3)
    attempt(kind, 2, total // 3, [1])
    answer, hands = attempt(kind, 3, 10**6, [2, 1])
    assert hands.computed == total - 2 * (total // 3)
    assert said(answer) == said(whole)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "of another job", "gone"])
@pytest.mark.parametrize("kind", JOBS)
def test_what_is_damaged_or_of_another_job_is_computed_again(attempt, tmp_path, kind, damage):
    whole, hands = attempt(kind, 0, 10**6)
    total = hands.computed
    attempt(kind, 1, total // 2, **({"normalize": False} if damage == "of another job" else {}))
    path = Path(tmp_path / "attempt1" / KEPT[kind])
    content = bytearray(path.read_bytes())
    if damage == "changed":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(content[: {"cut": len(content) * 2 // 3, "empty": 0}.get(damage, len(content))])
    if damage == "gone":
        path.unlink()
    answer, hands = attempt(kind, 2, 10**6, [1])
    assert total - total // 2 <= hands.computed <= total
    assert said(answer) == said(whole)
