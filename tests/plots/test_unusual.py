"""What is missing is left out of a picture, and what is unusual is drawn all the same."""

import time

import numpy as np
import pytest

from workers.plots.pan import measure
from workers.plots.stored import array, rows
from workers.plots.style import evenly

RNG = np.random.default_rng(3)
WALK = RNG.standard_normal(300).cumsum()
NO_PAIR = {"motif": None, "discord": None, "windows": 291}
HUGE = 100_000


def profile_of(distances):
    side = np.full(len(distances), -1)
    return {"distances": distances, "indices": side, "left_indices": side, "right_indices": side}


def holed(*gaps):
    values = WALK.copy()
    for gap in gaps:
        values[gap] = np.nan
    return values


def test_missing_values_leave_gaps(ready, draw):
    values = holed(slice(50, 60), slice(200, 220))
    distances = np.where(np.isfinite(values[:291]), 1.0, np.inf)
    series = draw(
        ready("matrix_profile", {"series": [values]}, profile_of(distances), NO_PAIR, window=10), format="svg"
    )
    assert series.strokes("series") == series.strokes("profile") == 3
    lanes = {"motif": [None, None], "discord": [None, None]}
    both = np.stack([distances, np.full(291, np.inf)])
    arrays = {"distances": both, "indices": np.full(both.shape, -1)}
    multi = ready("multidimensional_profile", {"series": [WALK, values]}, arrays, lanes, window=10)
    drawing = draw(multi, format="svg")
    assert (drawing.strokes("series-0"), drawing.strokes("series-1"), drawing.strokes("profile-1")) == (1, 3, 3)
    pair = ready("mpdist", {"a": [values], "b": [WALK]}, {"distance": np.array(1.0)}, {"distance": 1.0}, window=10)
    drawing = draw(pair, format="svg")
    assert (drawing.strokes("series-a"), drawing.strokes("series-b")) == (3, 1)


def test_a_result_without_any_distance_is_drawn(finished, ready, draw):
    nothing, series = np.full(300, np.nan), {"series": [np.full(300, np.nan)]}
    requests = [
        lambda: ready("matrix_profile", series, profile_of(np.full(291, np.inf)), NO_PAIR, window=10),
        lambda: ready("mpdist", {"a": [nothing], "b": [WALK]}, {"distance": np.nan}, {"distance": None}, window=10),
        lambda: finished("multidimensional_profile", {"series": [nothing, nothing]}, window=10),
        lambda: finished("pan_profile", {"series": [holed(slice(5, None, 6))]}, min_window=10, max_window=12),
    ]
    for request in requests:
        assert draw(request(), format="svg").answer == {"ok": {}}


@pytest.mark.parametrize("count", [1, 50])
def test_any_number_of_dimensions(finished, draw, count):
    many = [RNG.standard_normal(120).cumsum() for _ in range(count)]
    request = finished("multidimensional_profile", {"series": many}, window=10)
    drawing = draw(request, format="svg")
    assert {f"motif-{count}", f"discord-{count}", "motif-1", "profile-1", f"profile-{count}"} <= drawing.ids
    assert {f"series-{number}" for number in range(count)} <= drawing.ids
    profiles = [each for each in drawing.ids if each.startswith("profile-")]
    assert len(profiles) == min(count, 6)
    small = draw(request, format="svg", width=400, height=200)
    alone = request["summary"]["motif"][0]["members"][0]
    assert f"motif-1-window-0-series-{alone}" in small.ids  # whatever is left out, never what was found


def test_one_window_only(finished, draw):
    pan = draw(finished("pan_profile", {"series": [WALK]}, min_window=20, max_window=20), format="svg")
    assert {"heat-map", "motif"} <= pan.ids
    one = WALK[:20]
    apart = draw(finished("mpdist", {"a": [one], "b": [one[::-1]]}, window=20), format="svg")
    assert {"window-a", "window-b"} <= apart.ids
    together = draw(finished("consensus_motif", {"series": [one, one[::-1]]}, window=20), format="svg")
    assert {"consensus", "consensus-window"} <= together.ids


def test_many_series_of_a_consensus(ready, draw):
    many = [RNG.standard_normal(40) for _ in range(60)]
    others = [
        {"series": other, "index": other % 30, "distance": float(other % 7)} for other in range(60) if other != 41
    ]
    summary = {"radius": 6.0, "series": 41, "index": 3, "neighbors": others}
    request = ready("consensus_motif", {"series": many}, {"radius": np.array(6.0)}, summary, window=8)
    drawing = draw(request, format="svg", width=400, height=300)
    assert 20 < len([each for each in drawing.ids if each.startswith("series-")]) < 60
    assert {"consensus", "series-41"} <= drawing.ids
    farthest = max(others, key=lambda each: each["distance"])["distance"]
    assert any(f"neighbor-{each['series']}" in drawing.ids for each in others if each["distance"] == farthest)


def test_a_thousand_windows_over_a_long_series(ready, draw):
    """100,000 samples: the result has 800 MB, which are never in memory at once."""
    values, windows = RNG.standard_normal(HUGE).cumsum(), np.arange(100, 1100)
    distances = RNG.random((1000, HUGE - 99)).astype(np.float64)
    best = {"window": 100, "index": 5000, "neighbor": 70_000, "distance": 0.1, "normalised_distance": 0.005}
    summary = {"windows": 1000, "best": best, "normalised_by": "2*sqrt(window)"}
    arrays = {"windows": windows, "distances": distances}
    request = ready("pan_profile", {"series": [values]}, arrays, summary, min_window=100, max_window=1099)
    del distances, arrays
    started = time.monotonic()
    drawing = draw(request, format="svg", max_memory_bytes=1 << 30)
    assert {"heat-map", "motif"} <= drawing.ids
    assert time.monotonic() - started < 60
    assert len(drawing.picture or b"") < 2 << 20


def test_long_series_of_the_other_kinds(ready, draw):
    values = RNG.standard_normal(HUGE).cumsum()
    distances = RNG.random(HUGE - 99)
    pick = {"index": 10, "neighbor": 90_000, "distance": 0.1, "members": [0], "dimensions": 1}
    one = {"motif": pick, "discord": pick | {"index": 55_000}}
    several = {name: [found, found | {"members": [0, 1]}] for name, found in one.items()}
    consensus = {"radius": 1.0, "series": 0, "index": 7, "neighbors": [{"series": 1, "index": 50_000, "distance": 1.0}]}
    both = np.stack([distances, distances + 1])
    requests = [
        ("matrix_profile", {"series": [values]}, profile_of(distances), one),
        ("multidimensional_profile", {"series": [values, values]}, {"distances": both}, several),
        ("mpdist", {"a": [values], "b": [values]}, {"distance": np.array(1.0)}, {"distance": 1.0}),
        ("consensus_motif", {"series": [values, values]}, {"radius": np.array(1.0)}, consensus),
    ]
    for kind, series, arrays, summary in requests:
        drawing = draw(ready(kind, series, arrays, summary, window=100), format="svg", max_memory_bytes=1 << 30)
        assert drawing.answer == {"ok": {}}, kind
        assert len(drawing.picture or b"") < 1 << 20, kind


def test_the_largest_numbers_there_are(ready, draw):
    values = np.where(np.arange(300) % 2, 1.7e308, -1.7e308)
    pair = {"a": [values], "b": [np.zeros(300)]}
    for normalize in (True, False):
        request = ready("mpdist", pair, {"distance": np.array(1.0)}, {"distance": 1.0}, window=10, normalize=normalize)
        assert draw(request).answer == {"ok": {}}
    near = {"radius": 1.0, "series": 0, "index": 7, "neighbors": [{"series": 1, "index": 50, "distance": 1.0}]}
    lanes = {"series": [values, np.zeros(300)]}
    request = ready("consensus_motif", lanes, {"radius": np.array(1.0)}, near, window=10)
    assert draw(request).answer == {"ok": {}}


def test_rows_are_read_one_after_the_other(tmp_path):
    table = RNG.random((5, 7))
    np.savez(tmp_path / "result.npz", distances=table, windows=np.arange(5), columns=np.asfortranarray(table))
    assert np.array_equal(np.stack(list(rows(tmp_path / "result.npz", "distances"))), table)
    assert np.array_equal(array(tmp_path / "result.npz", "windows"), np.arange(5))
    with pytest.raises(ValueError, match="stored by columns"):
        list(rows(tmp_path / "result.npz", "columns"))


@pytest.mark.parametrize("asked", [{}, *({"normalize": False, "p": p} for p in (1.0, 2.0, 3.5))], ids=str)
def test_colours_are_relative_as_the_summary_says(finished, asked):
    request = finished("pan_profile", {"series": [WALK]}, min_window=20, max_window=40, step=4, **asked)
    best, windows = request["summary"]["best"], np.arange(20, 41, 4)
    scale, _ = measure(asked, WALK, windows)
    relative = best["distance"] / scale[windows.tolist().index(best["window"])]
    assert relative == pytest.approx(best["normalised_distance"])


def test_evenly_has_both_ends():
    assert evenly(1, 6) == [0]
    assert evenly(6, 6) == [0, 1, 2, 3, 4, 5]
    assert evenly(1000, 3) == [0, 500, 999]
