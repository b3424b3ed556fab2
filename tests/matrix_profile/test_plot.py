"""A plot has the size asked for, is the same every time, and says plainly when it cannot be drawn."""

import json
import os
import struct
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from workers.thinning import thinned

SERIES = np.sin(np.arange(3000) / 20) + np.random.default_rng(0).standard_normal(3000) / 5
SERIES[1200:1230] = np.nan
HOURS = np.arange(3000) * 3_600_000_000


@pytest.fixture
def plot(job, tmp_path):
    def start(against=None, times=HOURS, **changed):
        done = job(SERIES, 100, times=times, against=against)
        series = {"name": "pump_$2", "path": str(tmp_path / "series.npy")}
        if times is not None:
            series["time_path"] = str(tmp_path / "series.time.npy")
        request = {
            "result": str(done.folder / "result.npz"),
            "series": series,
            "window": 100,
            "title": "Pump 2 & its motif",
            "summary": done.answer["summary"],
            "format": "png",
            "width": 901,
            "height": 603,
            "output": str(tmp_path / "plot"),
            "max_memory_bytes": 4 << 30,
        } | changed
        child = subprocess.run(
            [sys.executable, "-m", "workers.plot"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=True,
            cwd=os.getcwd(),
        )
        answer = json.loads(child.stdout)
        return answer, (tmp_path / "plot").read_bytes() if "ok" in answer else None

    return start


@pytest.mark.parametrize(("width", "height"), [(901, 603), (240, 160), (2400, 1200)])
def test_png_of_the_size_asked_for(plot, width, height):
    answer, picture = plot(width=width, height=height)
    assert answer == {"ok": {}}
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (width, height)


def test_svg_of_the_size_asked_for_and_the_same_twice(plot):
    _, picture = plot(format="svg")
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert [round(float(root.get(side).removesuffix("pt")) * 96 / 72) for side in ("width", "height")] == [901, 603]
    assert plot(format="svg")[1] == picture


def test_png_is_the_same_twice(plot):
    assert plot()[1] == plot()[1]


@pytest.mark.parametrize("against", [None, SERIES[500:900]], ids=["self", "AB"])
def test_without_times_rows_are_the_axis(plot, against):
    assert plot(times=None, against=against)[0] == {"ok": {}}


def test_a_profile_without_any_neighbour_is_drawn(plot):
    nothing = {"motif": None, "discord": None, "windows": 2901}
    assert plot(summary=nothing)[0] == {"ok": {}}


def test_what_cannot_be_drawn_is_said(plot, tmp_path):
    assert "not 'gif'" in plot(format="gif")[0]["error"]["detail"]
    assert "FileNotFoundError" in plot(result=str(tmp_path / "none.npz"))[0]["error"]["detail"]
    assert "memory" in plot(max_memory_bytes=1 << 20)[0]["error"]["detail"]
    assert not list(tmp_path.glob("*.partial"))


def test_thinning_keeps_every_peak_and_every_wide_gap():
    values = np.zeros(1_000_003)
    values[654_321], values[700_000:800_000], values[100] = 9.0, np.nan, np.inf
    rows, drawn = thinned(values, 500)
    assert len(rows) == len(drawn) <= 2100
    assert drawn[np.nanargmax(drawn)] == 9.0
    assert abs(rows[np.nanargmax(drawn)] - 654_321) < 1000
    assert np.isnan(drawn[(rows > 701_000) & (rows < 799_000)]).all()
    assert np.isfinite(drawn[rows < 699_000]).all()
    assert (np.diff(rows) >= 0).all()
