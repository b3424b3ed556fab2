"""A pan profile has, for each window, the matrix profile the definition gives."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests import oracle
from tests.matrix_profile.hard import HARD, WALK, with_
from workers.failures import InvalidInput
from workers.matrix_profile import pan_length

SHORT = WALK[:70]


@pytest.fixture
def pan(compute):
    def start(series, **asked):
        return compute("pan_profile", {"series": [series]}, **asked)

    return start


def rows(done):
    """window → its distances."""
    windows, samples = done.arrays["windows"], done.arrays["distances"].shape[1] + done.arrays["windows"][0] - 1
    assert (np.diff(windows) > 0).all()
    for m, row in zip(windows, done.arrays["distances"], strict=True):
        assert np.isinf(row[samples - m + 1 :]).all()
        yield int(m), row[: samples - m + 1]


def assert_true(done, series, windows, *, within=1e-7, **asked):
    found = dict(rows(done))
    assert list(found) == list(windows)
    for m, row in found.items():
        truth = oracle.matrix_profile(series, m, **asked).distances[:, 0]
        scale = np.max(truth[np.isfinite(truth)], initial=0.0) or 1.0
        np.testing.assert_allclose(row, truth, rtol=within, atol=within * scale)


DISTANCES = [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.0, 1.5))]
TILES = {"implementation": "tiles"}
OF_TILES = [{}, {"normalize": False, "p": 2.0}]


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
def test_every_distance(pan, asked):
    done = pan(SHORT, min_window=4, max_window=40, step=5, **asked)
    assert_true(done, SHORT, range(4, 41, 5), **asked)
    assert done.answer["provenance"]["function"] == ("stumpy.aamp_stimp" if asked else "stumpy.stimp")
    assert [told[:3] for told in done.heard.progressed] == [(n, 8, "windows") for n in range(1, 9)]


@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_in_tiles(pan, asked):
    done = pan(WALK, min_window=4, max_window=112, step=4, plan=TILES, **asked)
    assert_true(done, WALK, range(4, 113, 4), within=1e-10, **asked)
    provenance, verification = done.answer["provenance"], done.answer["summary"]["verification"]
    assert (provenance["implementation"], provenance["function"]) == ("tiles", "tiles.pan_profile")
    assert provenance["tiles"] == 28
    assert verification["rows_checked"] > 28
    assert verification["rows_recomputed"] == 0
    assert [told[:3] for told in done.heard.progressed] == [(n, 28, "windows") for n in range(1, 29)]
    assert not (done.folder / "pan.checkpoint").exists()


@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_window_lengths_cut_into_tiles(pan, asked, monkeypatch):
    monkeypatch.setattr(pan_length, "WHOLE_CELLS", 1 << 20)
    series = np.random.default_rng(2).standard_normal(3000).cumsum()
    done = pan(series, min_window=20, max_window=50, step=15, plan=TILES, **asked)
    by_stumpy = pan(series, min_window=20, max_window=50, step=15, **asked)
    assert done.answer["provenance"]["tiles"] > 3
    np.testing.assert_allclose(done.arrays["distances"], by_stumpy.arrays["distances"], rtol=1e-9, atol=1e-9)
    best, its = (each.answer["summary"]["best"] for each in (done, by_stumpy))
    assert (best["window"], {best["index"], best["neighbor"]}) == (its["window"], {its["index"], its["neighbor"]})


@pytest.mark.parametrize("asked", DISTANCES, ids=str)
def test_in_pieces_on_a_cluster(pan, spread, asked):
    done = pan(SHORT, plan=spread, min_window=4, max_window=40, step=6, **asked)
    assert_true(done, SHORT, range(4, 41, 6), **asked)
    assert done.answer["provenance"]["function"] == ("stumpy.aamp_stimped" if asked else "stumpy.stimped")
    assert done.answer["provenance"]["pieces"] == 14
    assert [told[:3] for told in done.heard.progressed] == [(n, 7, "windows") for n in range(1, 8)]


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_all_windows_by_default(pan, plan):
    assert_true(pan(SHORT[:30], plan=plan), SHORT[:30], range(3, 24))


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_one_window(pan, plan):
    assert_true(pan(SHORT, min_window=9, max_window=9, plan=plan), SHORT, [9])


@pytest.mark.parametrize("case", [case for case in HARD if case not in ("values near the largest", "only gaps")])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 1.0}, {"normalize": False}], ids=str)
def test_hard_series(pan, case, asked):
    assert_true(pan(HARD[case], min_window=5, max_window=25, step=10, **asked), HARD[case], (5, 15, 25), **asked)


@pytest.mark.parametrize("case", [case for case in HARD if case not in ("values near the largest", "only gaps")])
@pytest.mark.parametrize("asked", OF_TILES, ids=str)
def test_hard_series_in_tiles(pan, case, asked):
    windows = (5, 9, 13, 17, 21, 25)
    done = pan(HARD[case], min_window=5, max_window=25, step=4, plan=TILES, **asked)
    assert_true(done, HARD[case], windows, within=1e-8, **asked)


@pytest.mark.parametrize("pre", [False, True])
@pytest.mark.parametrize("asked", [{}, {"normalize": False, "p": 1.0}, {"normalize": False, "p": 3.0}], ids=str)
def test_an_approximation_is_above_the_truth_and_says_so(pan, pre, asked):
    series = with_(WALK * 1e-8, slice(30, 33), np.nan)
    done = pan(series, min_window=8, max_window=30, step=11, percentage=0.2, pre_scrump=pre, **asked)
    above = 0
    for m, row in rows(done):
        truth = oracle.matrix_profile(series, m, **asked)
        assert (np.isinf(row) | (row >= truth.distances[:, 0] * (1 - 1e-9))).all()
        table = np.where(np.isfinite(truth.table), truth.table, np.nan).astype(float)
        for distance, others in zip(row, table, strict=True):
            if np.isfinite(distance):  # the exact distance of some pair
                assert np.nanmin(np.abs(others - distance)) <= 1e-9 * distance
                above += distance > np.nanmin(others) * (1 + 1e-9)
    assert above
    assert done.answer["summary"]["approximate"] is True
    assert "order" in done.answer["provenance"]["seeds"]
    again = pan(series, min_window=8, max_window=30, step=11, percentage=0.2, pre_scrump=pre, **asked)
    np.testing.assert_array_equal(done.arrays["distances"], again.arrays["distances"])


def test_a_row_that_is_wrong_is_computed_anew(pan, monkeypatch):
    """The tiles name any window, the same for all."""
    original = pan_length.Length.finish

    def wrong(self, report):
        self._known.neighbors[:] = len(self._known.neighbors) - 1
        return original(self, report)

    monkeypatch.setattr(pan_length.Length, "finish", wrong)
    done = pan(SHORT, min_window=8, max_window=16, step=4, plan=TILES)
    assert_true(done, SHORT, (8, 12, 16))
    assert done.answer["summary"]["verification"]["rows_recomputed"] == 63 + 59 + 55
    assert any("differed from it" in warning for warning in done.heard.warnings)


def test_windows_that_stumpy_would_change_are_the_users_mistake(pan):
    with pytest.raises(InvalidInput, match="do not fit"):
        pan(SHORT, min_window=3, max_window=69)
    with pytest.raises(InvalidInput, match="no finite value"):
        pan(np.full(40, np.nan))


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_the_four_files_say_the_same(pan, plan):
    series = with_(SHORT, 20, np.nan)
    done = pan(series, plan=plan, min_window=5, max_window=15, step=10, times={"series": np.arange(70) * 1_000_000})
    said, found = json.loads((done.folder / "result.json").read_text()), dict(rows(done))
    assert said["windows"] == [5, 15]
    plain = [np.where(np.isfinite(row), row, None).tolist() for row in found.values()]
    assert said["distances"] == plain
    assert len(said["at"]) == 66
    table = pa.parquet.read_table(done.folder / "result.parquet")
    assert table.column_names == ["window", "index", "time", "distance"]
    assert table["window"].to_pylist() == [5] * 66 + [15] * 56
    assert table["index"].to_pylist() == [*range(66), *range(56)]
    assert table["distance"].to_pylist() == plain[0] + plain[1]
    lines = (done.folder / "result.csv").read_text().splitlines()
    assert lines[0] == "window,index,time,distance"
    assert len(lines) == 1 + 66 + 56


@pytest.mark.parametrize("plan", [{}, TILES], ids=str)
def test_the_summary_names_the_nearest_pair_for_its_length(pan, plan):
    done = pan(SHORT, min_window=4, max_window=30, step=13, plan=plan)
    best = done.answer["summary"]["best"]
    relative = {m: row.min() / (2 * np.sqrt(m)) for m, row in rows(done)}
    assert best["window"] == min(relative, key=relative.get)
    assert best["normalised_distance"] == pytest.approx(min(relative.values()))
    truth = oracle.matrix_profile(SHORT, best["window"]).table
    assert float(truth[best["index"], best["neighbor"]]) == pytest.approx(best["distance"], abs=1e-9)
    assert done.answer["summary"]["windows"] == 3
    # By STUMPY two and the named ones of each length; in tiles two, which may be the same one.
    assert done.answer["summary"]["verification"]["rows_checked"] >= (6 if not plan else 3)
    json.dumps(done.answer, allow_nan=False)
