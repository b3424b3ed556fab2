"""What every picture has: the request it answers, a title, vertical axes, a legend."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from workers.plots.across import Across
from workers.plots.style import PAPER, QUIET, shortened


class Page:
    """One picture under way. `request`: see workers.plot."""

    def __init__(self, request: dict[str, Any], figure: Figure) -> None:
        self.figure, self.width, self.height = figure, int(request["width"]), int(request["height"])
        self.result, self.summary = Path(request["result"]), request["summary"]
        self.params: dict[str, Any] = request["params"]
        self.sources: dict[str, list[dict[str, Any]]] = request["sources"]
        self.handles: list[Any] = []

    def title(self, axes: Axes, text: str) -> None:
        width = self.figure.get_figwidth() - 0.75
        size = 13 if len(text) <= width * 8.8 else 11
        room = max(12, int(width * 8.8 * 13 / size))
        axes.set_title(shortened(text, room), loc="left", fontsize=size, fontweight="bold", pad=10)

    def upright(self, axes: Axes, name: str) -> None:
        """The vertical axis of a series or a profile."""
        axes.set_ylabel(shortened(name, 30))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        if max(np.abs(axes.get_ylim())) >= 1e5:
            axes.yaxis.set_major_formatter(EngFormatter(sep=" "))

    def dot(self, axes: Axes, across: Across, rows: Sequence[int], heights: Any, gid: str, **look: Any) -> None:
        """Mark points of a profile, and put `look["label"]` into the legend. look: a line's color, marker, label …"""
        style: dict[str, Any] = {
            "linestyle": "none",
            "markersize": 6.5,
            "markeredgecolor": PAPER,
            "markeredgewidth": 1.2,
        } | look
        self.handles += axes.plot(
            across.x(np.array(rows)), np.asarray(heights), gid=gid, zorder=4, clip_on=False, **style
        )

    def blank(self, axes: Axes) -> None:
        """Say why nothing is drawn."""
        axes.text(
            0.5, 0.5, "no window has a neighbour", transform=axes.transAxes, ha="center", va="center", color=QUIET
        )
        axes.set_yticks([])

    def legend(self) -> None:
        """All that was marked, below the picture, where there is room for words."""
        width = self.figure.get_figwidth()
        if not self.handles or width < 4:
            return
        longest = max(len(handle.get_label()) for handle in self.handles) * 0.075 + 0.6
        columns = int(np.clip(width / longest, 1, min(3, len(self.handles))))
        labels = [shortened(handle.get_label(), int(width / 0.075) - 6) for handle in self.handles]
        tight = {"handlelength": 1.2, "handleheight": 1.0, "columnspacing": 2.0}
        self.figure.legend(self.handles, labels, loc="outside lower left", ncols=columns, **tight)
