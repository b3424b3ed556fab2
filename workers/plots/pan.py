"""A pan profile: the series above, and below it, as colours, how near the nearest is for every window and place."""

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import date2num
from matplotlib.ticker import FixedLocator, MaxNLocator, StrMethodFormatter

from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.series import Series, look
from workers.plots import stored
from workers.plots.across import Across
from workers.plots.page import Page
from workers.plots.profile import span
from workers.plots.style import HEAT, PAIR

FEW: Final = 6
"""As many windows have a tick each."""


def draw(page: Page) -> None:
    (source,) = page.sources["series"]
    series, windows = look(source), stored.array(page.result, "windows").astype(np.int64)
    across, best = Across(series.times_us, page.width), page.summary.get("best")
    above, below = page.figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    across.line(above, *across.points(series.values), gid="series")
    _heat(page, across, series, windows, above, below)
    if best:
        m, starts = best["window"], [best["index"], best["neighbor"]]
        for number, start in enumerate(starts):
            span(above, across, series, start, m, PAIR, f"motif-window-{number}")
        where = " and ".join(across.when(start) for start in starts)
        label = f"Nearest pair: {where}, window {m:,}, distance {best['distance']:.3g}"
        page.dot(below, across, starts, [m, m], "motif", color=PAIR, marker="o", markersize=8, label=label)
    else:
        page.blank(below)
    page.title(
        above,
        f"{'Approximate pan' if page.summary.get('approximate') else 'Pan'} profile, {said(windows)} · {series.name}",
    )
    page.upright(above, series.name)
    across.label(below)
    page.figure.align_ylabels([above, below])


def said(windows: Ints) -> str:
    first, last = windows[[0, -1]]
    return f"window {first:,}" if first == last else f"windows {first:,} to {last:,}"


def measure(params: dict[str, Any], values: Floats, windows: Ints) -> tuple[Floats, str]:
    """What distances are divided by, for each window, so that they lie between 0 and 1, and how that reads: as STUMPY's own
    pan does, 2√m where normalised, else (max - min) · m^(1/p)."""
    if params.get("normalize", True):
        return np.asarray(2.0 * np.sqrt(windows)), "distance ÷ 2√window"
    p, there = float(params.get("p", 2.0)), values[np.isfinite(values)]
    half = (there.max() / 2 - there.min() / 2) if len(there) else 0.0
    root = {1.0: "window", 2.0: "√window"}.get(p, f"window^(1/{p:g})")
    return np.asarray(2 * (half or 1.0) * windows ** (1 / p)), f"distance ÷ (range · {root})"


def cells(page: Page, windows: Ints, scale: Floats, samples: int) -> tuple[Floats, Ints, Ints]:
    """The least of the distances in each pixel, NaN where none is finite; the first row of each column, and the place of the
    first window of each line."""
    lines = np.unique(np.arange(len(windows)) * min(len(windows), page.height) // len(windows), return_index=True)[1]
    starts = np.arange(0, samples, -(-samples // page.width))
    found = np.full((len(lines), len(starts)), np.nan)
    for at, row in enumerate(stored.rows(page.result, "distances")):
        finite = np.where(np.isfinite(row), row, np.nan) / scale[at]
        line = found[np.searchsorted(lines, at, side="right") - 1]
        np.fmin(line, np.fmin.reduceat(finite, starts), out=line)
    return found, starts, lines


def _heat(page: Page, across: Across, series: Series, windows: Ints, above: Axes, below: Axes) -> None:
    scale, label = measure(page.params, series.values, windows)
    rows, half = len(series.values) - int(windows[0]) + 1, int(page.params.get("step", 1)) / 2
    found, starts, lines = cells(page, windows, scale, rows)
    there = found[np.isfinite(found)]
    most = float(np.quantile(there, 0.995)) if len(there) else 1.0
    x = across.x(np.append(starts, rows))
    y = np.append(windows[lines] - half, windows[-1] + half)
    edges = x if across.times is None else date2num(x)  # type: ignore[no-untyped-call]
    image = below.pcolorfast(edges, y, np.ma.masked_invalid(found), cmap=HEAT, vmin=0.0, vmax=most or 1.0)
    image.set_gid("heat-map")
    below.set_gid("heat-map-axes")
    below.grid(visible=False)
    below.set_ylabel("window")
    locator = FixedLocator(windows.tolist()) if len(windows) <= FEW else MaxNLocator(nbins=6, integer=True)
    below.yaxis.set_major_locator(locator)
    below.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    bar = page.figure.colorbar(image, ax=[above, below], label=label, aspect=40, pad=0.015, extend="max")
    bar.outline.set_visible(False)
