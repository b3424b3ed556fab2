"""One picture, from request to file, and the table of the kinds that have one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from workers.plots import consensus, mpdist, multidimensional, pan, profile, training
from workers.plots.page import Page
from workers.plots.style import PAPER, STYLE, dots

KINDS: Final[dict[str, Callable[[Page], None]]] = {
    "matrix_profile": profile.draw,
    "multidimensional_profile": multidimensional.draw,
    "mpdist": mpdist.draw,
    "consensus_motif": consensus.draw,
    "pan_profile": pan.draw,
    "training": training.draw,
}


def draw(request: dict[str, Any], output: Path) -> None:
    """Write the picture of `request` (see workers.plot) to `output`."""
    density = 96 if request["format"] == "svg" else dots(request["width"], request["height"])
    size = (request["width"] + 0.01) / density, (request["height"] + 0.01) / density
    with mpl.rc_context(STYLE):
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
        figure = Figure(figsize=size, dpi=density, facecolor=PAPER, layout=layout)
        page = Page(request, figure)
        KINDS[request["kind"]](page)
        page.legend()
        dated = {"Date": None} if request["format"] == "svg" else {"Software": None}
        figure.savefig(output, format=request["format"], dpi=density, metadata=dated)
