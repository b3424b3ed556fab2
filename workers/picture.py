"""The picture of a profile: the series with its motif and discord above, how lonely each window is below."""

import textwrap
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import EngFormatter, MaxNLocator, StrMethodFormatter

from workers.matrix_profile.series import Series, look
from workers.thinning import thinned

INK, PAPER, QUIET, LINE = "#22303c", "#ffffff", "#6b7a86", "#52636f"
MOTIF, DISCORD = "#0072b2", "#d55e00"
"""Apart for every kind of colour vision (Okabe and Ito, 2008)."""

STYLE: Final[Any] = {
    "font.size": 10.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": "#c3ccd2",
    "axes.labelcolor": QUIET,
    "axes.labelsize": 9.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": "#e9edf0",
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "path.simplify": True,
    "svg.hashsalt": "tidemill",
    "svg.fonttype": "path",
}
LONGEST_DATE = np.datetime64("9999-01-01", "us").astype(np.int64)


def draw(request: dict[str, Any], output: Path) -> None:
    """Write the picture of `request` (see workers.plot) to `output`."""
    dots = 96 if request["format"] == "svg" else _dots(request["width"], request["height"])
    size = (request["width"] + 0.01) / dots, (request["height"] + 0.01) / dots
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=dots, facecolor=PAPER, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        Picture(request, figure).fill(above, below)
        dated = {"Date": None} if request["format"] == "svg" else {"Software": None}
        figure.savefig(output, format=request["format"], dpi=dots, metadata=dated)


class Picture:
    """One profile and where things lie on its horizontal axis: rows, or times where every row has one."""

    def __init__(self, request: dict[str, Any], figure: Figure) -> None:
        self.figure, self.window, self.width = figure, int(request["window"]), int(request["width"])
        self.title, self.summary = str(request.get("title") or "Matrix profile"), request["summary"]
        self.series: Series = look(request["series"])
        with np.load(request["result"]) as stored:
            distances = stored["distances"]
            self.nearest = distances if distances.ndim == 1 else distances[:, 0]
            self.self_join = bool((stored["left_indices"] >= 0).any() or (stored["right_indices"] >= 0).any())
        times = self.series.times_us
        self.times = times if times is not None and _drawable(times) else None

    def fill(self, above: Axes, below: Axes) -> None:
        self._line(above, self.series.values, linewidth=0.9, color=LINE)
        self._line(below, self.nearest, linewidth=0.9, color=LINE)
        below.set_ylim(bottom=0)
        self._mark(above, below)
        self._label(above, below)

    def x(self, rows: Any) -> Any:
        """Where rows lie on the axis."""
        return rows if self.times is None else np.asarray(self.times[rows]).astype("datetime64[us]")

    def _line(self, axes: Axes, values: Any, **style: Any) -> None:
        rows, drawn = thinned(values, self.width)
        axes.plot(self.x(rows), drawn, solid_joinstyle="round", zorder=2, **style)
        alone = np.isfinite(drawn) & ~np.isfinite(np.roll(drawn, 1)) & ~np.isfinite(np.roll(drawn, -1))
        if alone.any():  # a point between two gaps has no line
            axes.plot(self.x(rows[alone]), drawn[alone], ".", markersize=2, color=style["color"], zorder=2)

    def _mark(self, above: Axes, below: Axes) -> None:
        if motif := self.summary.get("motif"):
            pair = [motif["index"], motif["neighbor"]] if self.self_join else [motif["index"]]
            name = "Motif" if self.self_join else "Motif, found in the other series"
            where = " and ".join(self._when(row) for row in pair)
            self._pick(above, below, pair, MOTIF, "o", f"{name}: {where}, distance {motif['distance']:.3g}")
        if discord := self.summary.get("discord"):
            label = f"Discord: {self._when(discord['index'])}, distance {discord['distance']:.3g}"
            self._pick(above, below, [discord["index"]], DISCORD, "D", label)

    def _pick(self, above: Axes, below: Axes, starts: list[int], color: str, marker: str, label: str) -> None:
        """Shade windows above and mark them below."""
        for start in starts:
            stop = min(start + self.window, len(self.series.values)) - 1
            above.axvspan(self.x(start), self.x(stop), color=color, alpha=0.16, linewidth=0, zorder=1)
            rows, values = thinned(self.series.values[start : stop + 1], self.width)
            above.plot(self.x(rows + start), values, color=color, linewidth=1.6, zorder=3)
            below.axvline(self.x(start), color=color, linewidth=0.9, alpha=0.35, zorder=1)
        shape: dict[str, Any] = {"marker": marker, "markersize": 6.5, "markeredgecolor": PAPER, "markeredgewidth": 1.2}
        below.plot(
            self.x(np.array(starts)),
            self.nearest[starts],
            color=color,
            linestyle="none",
            label=label,
            zorder=4,
            clip_on=False,
            **shape,
        )

    def _label(self, above: Axes, below: Axes) -> None:
        room = max(12, int(self.figure.get_figwidth() * 9))
        above.set_title(_shortened(self.title, room), loc="left", fontsize=13, fontweight="bold", pad=10)
        above.set_ylabel(_shortened(self.series.name, 30))
        below.set_ylabel("distance to nearest")
        if self.times is None:
            below.set_xlabel(f"row · window {self.window:,} rows")
            below.xaxis.set_major_locator(MaxNLocator(integer=True, nbins="auto"))
            below.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        else:
            below.set_xlabel(f"time (UTC) · window {self.window:,} rows")
            locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
            below.xaxis.set_major_locator(locator)
            below.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        for axes in (above, below):
            axes.margins(x=0.01)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        if max(np.abs(above.get_ylim())) >= 1e5:
            above.yaxis.set_major_formatter(EngFormatter(sep=" "))
        self.figure.align_ylabels([above, below])
        handles, labels = below.get_legend_handles_labels()
        if handles and self.figure.get_figwidth() >= 4:
            wide = sum(map(len, labels)) * 0.075 + 1.2 < self.figure.get_figwidth()
            self.figure.legend(
                handles,
                labels,
                loc="outside lower left",
                ncols=2 if wide else 1,
                handlelength=1.2,
                handleheight=1.0,
                columnspacing=2.0,
            )

    def _when(self, row: int) -> str:
        if self.times is None:
            return f"row {row:,}"
        moment: datetime = self.x(row).item()
        midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
        return str(moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M"))


def _drawable(times: Any) -> bool:
    """Whether every row has a time, none goes back, and all fall in years a calendar prints."""
    if not len(times) or times[0] < -LONGEST_DATE // 8 or times[-1] > LONGEST_DATE:
        return False
    step = 1 << 20
    return all(bool((np.diff(times[at : at + step + 1]) >= 0).all()) for at in range(0, len(times), step))


def _dots(width: int, height: int) -> int:
    """Dots per inch: letters grow with the picture, and stay legible in a small one."""
    return int(np.clip(100 * min(width / 1200, height / 700), 64, 300))


def _shortened(text: str, room: int) -> str:
    return textwrap.shorten(text, room, placeholder="…") or text[: room - 1] + "…"
