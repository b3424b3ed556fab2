"""Several series one above the other, each in a lane of its own and as tall as its lane."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from workers.matrix_profile.series import Series, look
from workers.plots.across import Across
from workers.plots.style import shortened


class Lanes:
    """sources: all series.  numbers: which of them are drawn, from top to bottom.  pixels: how tall the lanes are together."""

    def __init__(
        self, axes: Axes, across: Across, sources: Sequence[Mapping[str, Any]], numbers: list[int], pixels: float
    ) -> None:
        self.axes, self.across, self.lane = axes, across, {number: lane for lane, number in enumerate(numbers)}
        self.series: dict[int, Series] = {}
        self._bounds: dict[int, tuple[float, float]] = {}
        for number in numbers:
            self.series[number] = look(sources[number])
            rows, drawn = across.points(self.series[number].values)
            there = drawn[np.isfinite(drawn)]
            self._bounds[number] = (there.min(), there.max()) if len(there) else (0.0, 0.0)
            across.line(axes, rows, self._height(number, drawn), gid=f"series-{number}", linewidth=0.8)
        axes.set_ylim(0.5 - len(numbers), 0.5)
        letters = axes.get_figure().dpi * 0.24  # type: ignore[union-attr]
        named = range(0, len(numbers), max(1, -int(-len(numbers) * letters // pixels)))
        axes.set_yticks([-lane for lane in named], [shortened(self.series[numbers[lane]].name, 16) for lane in named])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")

    def window(self, number: int, start: int, m: int, color: str, gid: str) -> None:
        """Mark a window of one series, if that is drawn."""
        if number not in self.lane:
            return
        values, lane, lanes = self.series[number].values, self.lane[number], len(self.lane)
        stop = min(start + m, len(values)) - 1
        x = self.across.x
        top, bottom = (lanes - lane) / lanes, (lanes - lane - 1) / lanes
        self.axes.axvspan(x(start), x(stop), bottom, top, color=color, alpha=0.16, linewidth=0, zorder=1, gid=gid)
        rows, drawn = self.across.points(values[start : stop + 1], start)
        self.across.line(self.axes, rows, self._height(number, drawn), color=color, linewidth=1.5, zorder=3)

    def _height(self, number: int, drawn: Any) -> Any:
        """Values in the lane, whose middle is at minus its place."""
        low, high = self._bounds[number]
        part = (drawn - low) / (high - low) - 0.5 if high > low else drawn * 0.0
        return part * 0.84 - self.lane[number]


def most_lanes(pixels: float) -> int:
    """As many as still show a line each."""
    return max(4, int(pixels / 6))


def remark(drawn: int, count: int, thing: str, things: str) -> str:
    """How many there are, and how many of them are drawn."""
    some = "" if drawn == count else f"{drawn} of "
    return f"{some}{count:,} {thing if count == 1 else things}"
