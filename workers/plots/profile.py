"""A matrix profile: the series with its motif and discord above, how lonely each window is below."""

from matplotlib.axes import Axes

from workers.matrix_profile.profile import Floats
from workers.matrix_profile.series import Series, look
from workers.plots import stored
from workers.plots.across import Across
from workers.plots.page import Page
from workers.plots.style import DISCORD, MOTIF


def draw(page: Page) -> None:
    (source,), others = page.sources["series"], page.sources.get("against") or []
    series, window = look(source), int(page.params["window"])
    across = Across(series.times_us, page.width)
    distances = stored.array(page.result, "distances")
    nearest = distances if distances.ndim == 1 else distances[:, 0]
    above, below = page.figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    across.line(above, *across.points(series.values), gid="series")
    across.line(below, *across.points(nearest), gid="profile")
    below.set_ylim(bottom=0)
    picks = Picks(page, across, series, nearest, above, below)
    if motif := page.summary.get("motif"):
        starts = [motif["index"]] if others else [motif["index"], motif["neighbor"]]
        name = "Motif, found in the other series" if others else "Motif"
        picks.pick("motif", starts, MOTIF, "o", name, motif["distance"])
    else:
        page.blank(below)
    if discord := page.summary.get("discord"):
        picks.pick("discord", [discord["index"]], DISCORD, "D", "Discord", discord["distance"])
    against = "".join(f" against {other['name']}" for other in others)
    page.title(above, f"Matrix profile, window {window:,} · {series.name}{against}")
    page.upright(above, series.name)
    if motif:
        page.upright(below, "distance to nearest")
    across.label(below, f"window {window:,} rows")
    page.figure.align_ylabels([above, below])


class Picks:
    """Marks windows in the series above and in the profile below."""

    def __init__(self, page: Page, across: Across, series: Series, nearest: Floats, above: Axes, below: Axes) -> None:
        self.page, self.across, self.series, self.nearest = page, across, series, nearest
        self.above, self.below = above, below

    def pick(self, gid: str, starts: list[int], color: str, marker: str, name: str, distance: float) -> None:
        x, m = self.across.x, int(self.page.params["window"])
        for number, start in enumerate(starts):
            span(self.above, self.across, self.series, start, m, color, f"{gid}-window-{number}")
            self.below.axvline(x(start), color=color, linewidth=0.9, alpha=0.35, zorder=1)
        where = " and ".join(self.across.when(start) for start in starts)
        label = f"{name}: {where}, distance {distance:.3g}"
        heights = self.nearest[starts]
        self.page.dot(self.below, self.across, starts, heights, gid, color=color, marker=marker, label=label)


def span(axes: Axes, across: Across, series: Series, start: int, m: int, color: str, gid: str) -> None:
    """Mark a window of a series."""
    stop = min(start + m, len(series.values)) - 1
    axes.axvspan(across.x(start), across.x(stop), color=color, alpha=0.16, linewidth=0, zorder=1, gid=gid)
    rows, drawn = across.points(series.values[start : stop + 1], start)
    across.line(axes, rows, drawn, color=color, linewidth=1.6, zorder=3)
