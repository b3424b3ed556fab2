"""A training job: what was logged, step by step, losses above and all else below."""

import csv
import math
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes

from workers.plots.page import Page
from workers.plots.style import DISCORD, INK, MOTIF, QUIET

COLOURS: Final = (MOTIF, DISCORD, INK, "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Apart for every kind of colour vision (Okabe and Ito, 2008)."""
SEVERAL_ORDERS: Final = 50.0
"""A loss whose first value is so many times its last one is read on a logarithmic axis."""

Curve = list[tuple[int, float]]


def draw(page: Page) -> None:
    curves = read(page.result)
    losses = {name: curve for name, curve in curves.items() if "loss" in name}
    others = {name: curve for name, curve in curves.items() if name not in losses}
    groups = [group for group in (losses, others) if group]
    panels = page.figure.subplots(max(1, len(groups)), 1, sharex=True, squeeze=False)[:, 0]
    colours = dict(zip(curves, (COLOURS[i % len(COLOURS)] for i in range(len(curves))), strict=True))
    for axes, group in zip(panels, groups, strict=False):
        _lines(page, axes, group, colours)
    if not groups:
        text = "nothing was logged"
        panels[0].text(0.5, 0.5, text, transform=panels[0].transAxes, ha="center", va="center", color=QUIET)
    panels[-1].set_xlabel("step")
    page.figure.align_ylabels(panels)
    summary = page.summary
    ranks = f"{summary['world_size']} rank" + ("s" if summary["world_size"] > 1 else "")
    page.title(panels[0], f"{summary['steps']:,} steps in {summary['epochs']:,} epochs · {ranks}")


def _lines(page: Page, axes: Axes, group: dict[str, Curve], colours: dict[str, str]) -> None:
    for name, curve in group.items():
        steps, values = [step for step, _ in curve], [value for _, value in curve]
        look: dict[str, Any] = {"marker": "o", "markersize": 4} if len(curve) < 40 else {}
        page.handles += axes.plot(
            steps, values, color=colours[name], label=name, linewidth=1.4, gid=f"metric-{name}", **look
        )
    first, last = (max(curve[i][1] for curve in group.values()) for i in (0, -1))
    lowest = min(value for curve in group.values() for _, value in curve)
    if lowest > 0 and first > SEVERAL_ORDERS * last:
        axes.set_yscale("log")
        axes.set_ylabel("loss" if "loss" in next(iter(group)) else "")
        return
    page.upright(axes, "loss" if "loss" in next(iter(group)) else "metric")


def read(path: Path) -> dict[str, Curve]:
    """metric → (step, value) in order, of a `metrics.csv`. What is not finite is a gap."""
    curves: dict[str, Curve] = {}
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            step = int(row.pop("step"))
            row.pop("epoch", None)
            for name, text in row.items():
                if text and math.isfinite(value := float(text)):
                    curves.setdefault(name, []).append((step, value))
    return curves
