"""The horizontal axis: rows, or times where every row has one; and lines along it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from workers.matrix_profile.series import look as look_at
from workers.plots.style import LINE
from workers.plots.thinning import thinned

LONGEST_DATE: Final = np.datetime64("9999-01-01", "us").astype(np.int64)
LARGEST: Final = 1e300
"""Values beyond are drawn here: an axis around them would overflow."""


class Across:
    """Where rows lie on the axis. times_us: int64 (n,), or None.  pixels: the width that lines are thinned for."""

    def __init__(self, times_us: Any, pixels: int) -> None:
        self.times = times_us if times_us is not None and _drawable(times_us) else None
        self.pixels = pixels

    @classmethod
    def of(cls, sources: Sequence[Mapping[str, Any]], pixels: int) -> "Across":
        """The axis that these series have in common: times where all have the same ones."""
        first = sources[0]
        same = all(
            other.get(name) == first.get(name) for other in sources[1:] for name in ("time_path", "start", "stop")
        )
        return cls(look_at(first).times_us if same and first.get("time_path") else None, pixels)

    def x(self, rows: Any) -> Any:
        return rows if self.times is None else np.asarray(self.times[rows]).astype("datetime64[us]")

    def when(self, row: int) -> str:
        if self.times is None:
            return f"row {row:,}"
        moment: datetime = self.x(row).item()
        midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
        return str(moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M"))

    def points(self, values: Any, first: int = 0) -> tuple[Any, Any]:
        """Rows and values to draw, of `values` that begin in row `first`; NaN where there is a gap."""
        rows, drawn = thinned(values, self.pixels)
        return rows + first, drawn.clip(-LARGEST, LARGEST)

    def line(self, axes: Axes, rows: Any, drawn: Any, gid: str | None = None, **style: Any) -> None:
        """Join the points; one between two gaps is a dot."""
        look: dict[str, Any] = {"color": LINE, "linewidth": 0.9, "zorder": 2} | style
        axes.plot(self.x(rows), drawn, solid_joinstyle="round", gid=gid, **look)
        there = np.concatenate([[False], np.isfinite(drawn), [False]])
        alone = there[1:-1] & ~there[:-2] & ~there[2:]
        if alone.any():
            axes.plot(self.x(rows[alone]), drawn[alone], ".", markersize=2, color=look["color"], zorder=look["zorder"])

    def label(self, axes: Axes, note: str = "") -> None:
        """Ticks and a name; `note` follows."""
        axes.margins(x=0.01)
        axes.set_xlabel(" · ".join(filter(None, ["row" if self.times is None else "time (UTC)", note])))
        if self.times is None:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins="auto"))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        else:
            locator = AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _drawable(times: Any) -> bool:
    """Whether every row has a time, none goes back, and all fall in years a calendar prints."""
    if not len(times) or times[0] < -LONGEST_DATE // 8 or times[-1] > LONGEST_DATE:
        return False
    step = 1 << 20
    return all(bool((np.diff(times[at : at + step + 1]) >= 0).all()) for at in range(0, len(times), step))
