"""A consensus motif: the series stacked, with the consensus and its nearest windows, and all these windows overlaid."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from workers.plots.across import Across
from workers.plots.lanes import Lanes, most_lanes, remark
from workers.plots.page import Page
from workers.plots.style import DISCORD, LINE, MOTIF, evenly, shortened


def draw(page: Page) -> None:
    sources, window, said = page.sources["series"], int(page.params["window"]), page.summary
    others = sorted(said["neighbors"], key=lambda each: float(each["distance"]))
    beside = page.width > 1.15 * page.height
    room = page.height * (0.8 if beside else 0.5)
    chosen = [others[at] for at in evenly(len(others), most_lanes(room) - 1)]
    numbers = sorted([said["series"], *(each["series"] for each in chosen)])
    grid: dict[str, Any] = {"width_ratios": [2.4, 1]} if beside else {"height_ratios": [2, 1]}
    left, right = page.figure.subplots(*((1, 2) if beside else (2, 1)), **grid)
    lanes = Lanes(left, Across.of(sources, page.width), sources, numbers, room)
    overlay = Overlay(right, lanes, window, normalize=page.params.get("normalize", True))
    pale = float(np.clip(8 / len(chosen), 0.3, 1.0))
    for each in chosen[:-1]:
        overlay.window(each["series"], each["index"], LINE, f"neighbor-{each['series']}", alpha=pale)
    farthest = chosen[-1]
    far = overlay.window(
        farthest["series"], farthest["index"], DISCORD, f"neighbor-{farthest['series']}", linewidth=1.3
    )
    own = overlay.window(said["series"], said["index"], MOTIF, "consensus", linewidth=2.0)
    overlay.label()
    lanes.across.label(left, f"window {window:,} rows")
    where = _where(lanes, said["series"], said["index"])
    own.set_label(f"Consensus: {where}, radius {said['radius']:.3g}")
    far.set_label(f"Its farthest neighbour: {_where(lanes, farthest['series'], farthest['index'])}")
    page.handles += [own, far]
    page.title(left, f"Consensus motif, window {window:,} · {remark(len(numbers), len(sources), 'series', 'series')}")


def _where(lanes: Lanes, number: int, index: int) -> str:
    return f"{shortened(lanes.series[number].name, 24)}, {lanes.across.when(index)}"


class Overlay:
    """Windows of the series in `lanes`, laid over each other: z-normalised, or as they are."""

    def __init__(self, axes: Axes, lanes: Lanes, window: int, *, normalize: bool) -> None:
        self.axes, self.lanes, self.m, self.normalize = axes, lanes, window, normalize
        self.across = Across(None, lanes.across.pixels // 2)

    def window(self, number: int, start: int, color: str, gid: str, **style: Any) -> Any:
        """Mark it in its lane as well. Returns the line."""
        self.lanes.window(number, start, self.m, color, f"{gid}-window")
        values = np.array(self.lanes.series[number].values[start : start + self.m])
        if self.normalize:
            values = _normalised(values)
        before = len(self.axes.lines)
        self.across.line(self.axes, *self.across.points(values), gid=gid, color=color, **style)
        return self.axes.lines[before]

    def label(self) -> None:
        self.across.label(self.axes)
        self.axes.set_xlabel("row of the window")
        self.axes.set_ylabel("z-normalised" if self.normalize else "value")
        self.axes.yaxis.set_major_locator(MaxNLocator(nbins=5))


def _normalised(values: Any) -> Any:
    """Mean 0 and standard deviation 1; a constant is 0."""
    scaled = values / (np.abs(values).max() or 1.0)  # squares of large numbers overflow
    spread = scaled.std()
    return (scaled - scaled.mean()) / spread if np.ptp(scaled) > 0 else scaled * 0.0
