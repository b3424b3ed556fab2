"""A multidimensional profile: its dimensions above, below them the profiles of the best 1 … d dimensions."""

from typing import Any, Final

from matplotlib.axes import Axes

from workers.matrix_profile.profile import Floats
from workers.plots import stored
from workers.plots.across import Across
from workers.plots.lanes import Lanes, most_lanes, remark
from workers.plots.page import Page
from workers.plots.style import DISCORD, MOTIF, RAMP, evenly, shortened

MOST_PROFILES: Final = 6
ABOVE: Final = 0.55
"""The dimensions' share of the height, about."""


def draw(page: Page) -> None:
    sources, window = page.sources["series"], int(page.params["window"])
    across, count = Across.of(sources[:1], page.width), len(sources)
    numbers = sorted({*evenly(count, most_lanes(ABOVE * page.height)), *_members_of_first(page)})
    share = 2.2 + min(len(numbers), 10) * 0.13
    above, below = page.figure.subplots(2, 1, sharex=True, height_ratios=[share, 2])
    lanes = Lanes(above, across, sources, numbers, ABOVE * page.height)
    shown = evenly(count, MOST_PROFILES)
    profiles = {at: row for at, row in enumerate(stored.rows(page.result, "distances")) if at in shown}
    _lines(below, across, profiles)
    for at in sorted({0, count - 1}):
        _mark(page, lanes, below, at, profiles[at])
    page.title(
        above, f"Multidimensional profile, window {window:,} · {remark(len(numbers), count, 'dimension', 'dimensions')}"
    )
    if any(page.summary["motif"]):
        below.set_ylim(bottom=0)
        page.upright(below, "mean distance")
    else:
        page.blank(below)
    across.label(below, f"window {window:,} rows")


def _members_of_first(page: Page) -> set[int]:
    found = [page.summary[name][0] for name in ("motif", "discord")]
    return {member for each in found if each for member in each["members"]}


def _lines(axes: Axes, across: Across, profiles: dict[int, Floats]) -> None:
    """The darker a line, the more dimensions; what it stands for is said above it."""
    for place, (at, row) in enumerate(profiles.items()):
        color = RAMP(place / max(1, len(profiles) - 1)) if len(profiles) > 1 else RAMP(0.7)
        across.line(axes, *across.points(row), gid=f"profile-{at + 1}", color=color, label=str(at + 1))
    lines = [line for line in axes.lines if str(line.get_gid()).startswith("profile-")]
    if len(lines) > 1:
        tight = {"handlelength": 1.2, "columnspacing": 1.2, "borderaxespad": 0.0, "handletextpad": 0.5}
        labels = ["best 1", *(str(line.get_label()) for line in lines[1:])]
        labels[-1] = f"all {labels[-1]} dimensions"
        axes.legend(lines, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(lines), **tight)


def _mark(page: Page, lanes: Lanes, below: Axes, at: int, profile: Floats) -> None:
    """Motif and discord of one number of dimensions: in the dimensions that they take, and on their profile. Those of the
    fewest are hollow."""
    m, several = int(page.params["window"]), len(page.summary["motif"]) > 1
    for name, color, marker in (("motif", MOTIF, "o"), ("discord", DISCORD, "D")):
        found: dict[str, Any] | None = page.summary[name][at]
        if not found:
            continue
        starts, gid = [found["index"], *([found["neighbor"]] if name == "motif" else [])], f"{name}-{at + 1}"
        for place, start in enumerate(starts):
            for member in found["members"]:
                lanes.window(member, start, m, color, f"{gid}-window-{place}-series-{member}")
            below.axvline(lanes.across.x(start), color=color, linewidth=0.9, alpha=0.35, zorder=1)
        hollow = {"markerfacecolor": "white", "markeredgecolor": color} if several and at == 0 else {}
        where = " and ".join(lanes.across.when(start) for start in starts)
        of = "" if not several else f" of {_name(page, found)}" if at == 0 else f" of all {at + 1}"
        label = f"{name.capitalize()}{of}: {where}, distance {found['distance']:.3g}"
        look = {"color": color, "marker": marker, "label": label} | hollow
        page.dot(below, lanes.across, starts, profile[starts], gid, **look)


def _name(page: Page, found: dict[str, Any]) -> str:
    return shortened(page.sources["series"][found["members"][0]]["name"], 16)
