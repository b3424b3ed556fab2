"""Work that takes a while is cut into pieces, reports after each, and comes out the same."""

import warnings

import numpy as np
import pytest

from tests.matrix_profile.conftest import Heard
from workers.matrix_profile import ground, through_stumpy
from workers.matrix_profile.ground import Ground

A = np.random.default_rng(3).standard_normal(400).cumsum()
B = np.random.default_rng(4).standard_normal(300).cumsum()
A[200] = B[50] = np.nan


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("against", [None, B], ids=["self", "AB"])
@pytest.mark.parametrize(("normalize", "p"), [(True, 2.0), (False, 1.0), (False, 2.0), (False, 3.0)])
def test_pieces_agree_with_the_whole(warm, monkeypatch, normalize, p, against, k):
    asked = {"normalize": normalize, "p": p, "k": k, "ground": Ground(Heard())}
    whole = through_stumpy.compute(A, against, 20, **asked)
    monkeypatch.setattr(through_stumpy, "PIECE_SECONDS", whole.seconds / 7)
    monkeypatch.setattr(through_stumpy, "MERGE_SECONDS_PER_WINDOW", 0.0)
    cut = through_stumpy.compute(A, against, 20, **asked)

    assert whole.pieces == 1
    assert cut.pieces in (7, 8)
    assert cut.function == whole.function + "ed" or cut.function == "stumpy.stumped"
    np.testing.assert_allclose(cut.profile.distances, whole.profile.distances, atol=1e-6)
    assert np.mean(cut.profile.indices == whole.profile.indices) > 0.99
    np.testing.assert_array_equal(cut.profile.left, whole.profile.left)
    np.testing.assert_array_equal(cut.profile.right, whole.profile.right)


def test_progress_moves_with_every_piece(job, monkeypatch):
    monkeypatch.setattr(through_stumpy, "PIECE_SECONDS", 1e-5)
    monkeypatch.setattr(through_stumpy, "MERGE_SECONDS_PER_WINDOW", 0.0)
    done = job(A, 20)

    pieces = done.answer["provenance"]["pieces"]
    assert pieces > 10
    assert done.answer["provenance"]["function"] == "stumpy.stumped"
    assert [(number, total, unit) for number, total, unit, _ in done.heard.progressed] == [
        (number, pieces, "pieces") for number in range(1, pieces + 1)
    ]
    assert done.heard.progressed[-1][3] == 0.0
    assert done.heard.phases == ["loading", "computing", "verifying", "saving"]


def test_there_are_never_more_pieces_than_diagonals(warm, monkeypatch):
    monkeypatch.setattr(through_stumpy, "PIECE_SECONDS", 1e-12)
    monkeypatch.setattr(through_stumpy, "MERGE_SECONDS_PER_WINDOW", 0.0)
    _, pieces = through_stumpy.plan(A[:30], None, 20, normalize=True, k=1, ground=Ground(Heard()))
    assert pieces == 11 - 1 - 5


def test_what_stumpy_says_unexpectedly_reaches_the_user(warm, monkeypatch):
    def stump(*arguments, **keywords):
        warnings.warn("something new", UserWarning, stacklevel=1)
        warnings.warn("The window size, 'm = 20', may be too large", UserWarning, stacklevel=1)
        return found

    heard, found = Heard(), ground.stumpy.stump(A, 20)
    monkeypatch.setattr(ground.stumpy, "stump", stump)
    through_stumpy.compute(A, None, 20, normalize=True, p=2.0, k=1, ground=Ground(heard))
    assert heard.warnings == ["STUMPY: something new"]
