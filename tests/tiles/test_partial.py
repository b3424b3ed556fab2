"""What a join has found so far can be looked at, and is never too good."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.matrix_profile.hard import NOISE, WALK, with_
from tests.tiles.checkpoints import PROBLEMS, SPOILT, M, all_checkpoints
from workers.matrix_profile.tiles.alone import scaled
from workers.matrix_profile.tiles.best import Problem
from workers.matrix_profile.tiles.partial import so_far


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_part_is_never_below_the_truth(every_tile, monkeypatch, tmp_path, case):
    problem = PROBLEMS[case]
    joined, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    truth = oracle.matrix_profile(problem.a, M, against=problem.b, normalize=problem.normalize)
    before, shares = np.inf, []
    for path in checkpoints:
        profile, coverage = so_far(problem, path)
        shares.append(coverage)
        assert np.all(profile.distances >= truth.distances * (1 - 1e-13))
        assert np.all(profile.distances <= before), "it only gets better"
        before = profile.distances * (1 + 1e-13)
        assert np.array_equal(np.isfinite(profile.distances), profile.indices >= 0)
        there = profile.indices[:, 0] >= 0
        np.testing.assert_allclose(truth.at(profile.indices)[there], profile.distances[there], rtol=1e-12)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    assert np.array_equal(profile.distances, joined.profile.distances)


def test_constant_windows_have_theirs_from_the_start(every_tile, monkeypatch, tmp_path):
    series = with_(WALK, slice(20, 50), 3.25)
    _, checkpoints = all_checkpoints(Problem(series, None, M, True), tmp_path, monkeypatch)
    profile, coverage = so_far(Problem(series, None, M, True), checkpoints[0])
    assert coverage == 0
    assert np.all(profile.distances[20:39] <= np.sqrt(M))


def test_a_part_of_equal_windows(every_tile, monkeypatch, tmp_path):
    """Where distances are zero but for rounding."""
    problem = Problem(np.tile(NOISE[:30], 5), None, M, True)
    _, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    profile, _ = so_far(problem, checkpoints[-1])
    assert profile.distances.max() == 0


@pytest.mark.parametrize("case", [*SPOILT, "none"])
def test_what_is_no_whole_checkpoint_tells_nothing(every_tile, monkeypatch, tmp_path, case):
    problem = PROBLEMS["self, normalised"]
    _, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    SPOILT.get(case, Path.unlink)(checkpoints[4])
    profile, coverage = so_far(problem, checkpoints[4])
    assert coverage == 0
    assert not np.isfinite(profile.distances).any()


@pytest.mark.parametrize(("media_type", "start"), [("application/json", b'{"distances"'), ("text/csv", b"index,")])
def test_a_short_lived_process_writes_it(all_kept, monkeypatch, tmp_path, media_type, start):
    """In the units of the series as they came: a p-norm is computed on scaled ones."""
    problem, sent = Problem(scaled([WALK], normalize=False).series[0], None, M, False), WALK.tolist()
    assert not np.array_equal(problem.a, WALK)
    _, checkpoints = all_checkpoints(problem, tmp_path, monkeypatch)
    request = {
        "checkpoint": str(checkpoints[-1]),
        "params": {"window": M, "normalize": False},
        "sources": {"series": [{"name": "values", "values": sent}]},
        "media_type": media_type,
        "output": str(tmp_path / "part"),
        "threads": 1,
        "max_memory_bytes": None,
    }
    command = [sys.executable, "-m", "workers.so_far"]
    told = subprocess.run(command, input=json.dumps(request), check=True, capture_output=True, text=True).stdout
    answer = json.loads(told)
    assert answer == {"ok": {"coverage": 1.0}}, answer
    written = (tmp_path / "part").read_bytes()
    assert written.startswith(start)
    if media_type == "application/json":
        part, truth = json.loads(written), oracle.matrix_profile(WALK, M, normalize=False)
        np.testing.assert_allclose(part["distances"], truth.distances[:, 0], rtol=1e-12)
        assert (part["partial"], part["coverage"]) == (True, 1.0)
