"""A picture has the size asked for, is the same every time, and says plainly when it cannot be drawn."""

import numpy as np
import pytest

from tests.matrix_profile.hard import NOISE, OTHER, WALK
from workers.operations import OPERATIONS
from workers.plots.draw import KINDS

HOURS = np.arange(len(WALK)) * 3_600_000_000
GAPPY = WALK.copy()
GAPPY[60:66] = np.nan
JOBS = {
    "matrix_profile": ({"series": [GAPPY]}, {"window": 10}),
    "multidimensional_profile": ({"series": [GAPPY, np.abs(WALK), WALK[::-1]]}, {"window": 10}),
    "mpdist": ({"a": [GAPPY], "b": [OTHER]}, {"window": 10}),
    "consensus_motif": ({"series": [GAPPY, OTHER, NOISE[:80]]}, {"window": 10}),
    "pan_profile": ({"series": [GAPPY]}, {"min_window": 6, "max_window": 40, "step": 2}),
}
FOUND = {
    "matrix_profile": {"series", "profile", "motif", "motif-window-0", "motif-window-1", "discord", "discord-window-0"},
    "multidimensional_profile": {
        *(
            "series-0",
            "series-2",
            "profile-1",
            "profile-2",
            "profile-3",
            "motif-1",
            "motif-3",
            "discord-1",
            "discord-3",
        ),
        *("motif-3-window-0-series-0", "motif-3-window-1-series-2", "discord-3-window-0-series-1"),
    },
    "mpdist": {"series-a", "series-b", "window-a", "window-b"},
    "consensus_motif": {"series-0", "series-1", "series-2", "consensus", "consensus-window"},
    "pan_profile": {"series", "heat-map", "motif", "motif-window-0", "motif-window-1"},
}


def test_every_kind_with_a_result_has_a_picture():
    assert set(KINDS) == {*OPERATIONS, "training"}
    assert set(JOBS) == set(OPERATIONS)


def test_a_training_job_has_a_picture_of_what_it_logged(tmp_path, draw):
    table = tmp_path / "metrics.csv"
    rows = [
        f"{step},0,{1 / (step + 1)},{'' if step % 10 else 2.0},{step if step % 10 == 0 else ''}" for step in range(60)
    ]
    table.write_text("\n".join(["step,epoch,train_loss,val_loss,val_mae", *rows, "60,1,nan,,inf"]) + "\n")
    summary = {"steps": 60, "epochs": 1, "world_size": 2}
    request = {"kind": "training", "params": {}, "sources": {}, "summary": summary, "result": str(table)}
    assert draw(request, width=800, height=500).size == (800, 500)
    assert draw(request, format="svg").ids >= {"metric-train_loss", "metric-val_loss", "metric-val_mae"}
    table.write_text("step,epoch\n")
    assert draw(request, width=800, height=500).size == (800, 500)


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("timed", [True, False], ids=["times", "rows"])
def test_each_kind_in_each_format_and_size(finished, draw, kind, timed):
    series, params = JOBS[kind]
    times = {name: HOURS[: min(map(len, each))] for name, each in series.items()}
    request = finished(kind, series, times=times if timed and kind != "consensus_motif" else None, **params)
    for width, height in [(1200, 700), (400, 300), (200, 900)]:
        assert draw(request, width=width, height=height).size == (width, height)
    drawing = draw(request, format="svg")
    assert drawing.size == (1200, 700)
    assert drawing.ids >= FOUND[kind]
    assert len([each for each in drawing.ids if each.startswith("neighbor-")]) == 4 * (kind == "consensus_motif")


@pytest.mark.parametrize("kind", JOBS)
def test_the_same_request_gives_the_same_bytes(finished, draw, kind):
    series, params = JOBS[kind]
    request = finished(kind, series, **params)
    for kind_of_file in ("png", "svg"):
        assert draw(request, format=kind_of_file).picture == draw(request, format=kind_of_file).picture


def test_a_p_norm_is_drawn_as_it_is_measured(finished, draw):
    for kind, (series, params) in JOBS.items():
        drawing = draw(finished(kind, series, normalize=False, p=1.5, **params), format="svg")
        assert drawing.ids >= FOUND[kind]


def test_a_motif_in_another_series_is_marked_once(finished, draw):
    drawing = draw(finished("matrix_profile", {"series": [WALK], "against": [OTHER]}, window=10), format="svg")
    assert {"motif-window-0", "discord-window-0"} <= drawing.ids
    assert "motif-window-1" not in drawing.ids


def test_names_and_titles_are_taken_literally(finished, draw):
    request = finished("matrix_profile", {"series": [WALK]}, window=10)
    request["sources"]["series"][0]["name"] = "pump_$2 & <b> \\frac{1}"
    assert draw(request).answer == draw(request, format="svg").answer == {"ok": {}}


def test_what_cannot_be_drawn_is_said(finished, draw, tmp_path):
    request = finished("matrix_profile", {"series": [WALK]}, window=10)
    assert "not 'gif'" in draw(request, format="gif").answer["error"]["detail"]
    assert "FileNotFoundError" in draw(request, result=str(tmp_path / "none.npz")).answer["error"]["detail"]
    assert "memory" in draw(request, max_memory_bytes=1 << 20).answer["error"]["detail"]
    assert not list(tmp_path.glob("*.partial"))
