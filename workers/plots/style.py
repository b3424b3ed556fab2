"""How pictures look: colours, letters, and how much fits into the width there is."""

import textwrap
from typing import Any, Final

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

INK, PAPER, QUIET, LINE = "#22303c", "#ffffff", "#6b7a86", "#52636f"
MOTIF, DISCORD = "#0072b2", "#d55e00"
"""Apart for every kind of colour vision (Okabe and Ito, 2008)."""

RAMP: Final = LinearSegmentedColormap.from_list("ramp", ["#9fb6c3", INK])
PAIR: Final = "#d55e00"
"""On the colours of HEAT, which are violet to yellow."""

HEAT: Final = "viridis"
"""Even in brightness, and so for every kind of colour vision."""

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


def dots(width: int, height: int) -> int:
    """Dots per inch: letters grow with the picture, and stay legible in a small one."""
    return int(np.clip(100 * min(width / 1200, height / 700), 64, 300))


def shortened(text: str, room: int) -> str:
    """At most `room` characters, cut between words where one fits."""
    return textwrap.shorten(text, room, placeholder="…") or text[: room - 1] + "…"


def evenly(count: int, most: int) -> list[int]:
    """Of 0 … count-1 all, or `most` from the first to the last."""
    return [int(each) for each in np.unique(np.linspace(0, count - 1, min(count, most)).round())]
