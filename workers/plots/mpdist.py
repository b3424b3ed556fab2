"""MPdist: the two series, one above the other, and how far apart they are."""

from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from workers.matrix_profile.series import Series, look
from workers.plots.across import Across
from workers.plots.page import Page
from workers.plots.style import INK, MOTIF


def draw(page: Page) -> None:
    (a,), (b,), window = page.sources["a"], page.sources["b"], int(page.params["window"])
    both = [look(a), look(b)]
    ways = [Across(each.times_us, page.width) for each in both]
    timed = all(way.times is not None for way in ways)
    if not timed:  # rows are what both have
        ways = [Across(None, page.width) for _ in both]
    # A z-normalised distance forgets how large values are; a p-norm is of the values themselves.
    panels = page.figure.subplots(2, 1, sharex=not timed, sharey=not page.params.get("normalize", True))
    for name, axes, way, series in zip("ab", panels, ways, both, strict=True):
        way.line(axes, *way.points(series.values), gid=f"series-{name}")
        page.upright(axes, series.name)
        way.label(axes)
        _window(axes, way, series, window, name)
    if not timed:
        panels[0].set_xlabel("")
    page.figure.align_ylabels(panels)
    distance = page.summary["distance"]
    found = "no distance" if distance is None else f"{distance:.4g}"
    page.title(panels[0], f"MPdist {found}, window {window:,} · {both[0].name} and {both[1].name}")


def _window(axes: Axes, way: Across, series: Series, m: int, name: str) -> None:
    """A bar as long as a window, above the start of the series."""
    stop = min(m, len(series.values)) - 1
    place = blended_transform_factory(axes.transData, axes.transAxes)
    axes.plot(
        way.x([0, stop]), [1.0, 1.0], transform=place, color=MOTIF, linewidth=3, clip_on=False, gid=f"window-{name}"
    )
    end = axes.convert_xunits(way.x(stop))  # type: ignore[no-untyped-call]
    axes.annotate(
        f"window {m:,}",
        (end, 1.0),
        xycoords=place,
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=INK,
    )
