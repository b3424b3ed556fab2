"""What is compared with what, and when, in the search for a consensus."""

from collections.abc import Iterator

import numpy as np

from workers.matrix_profile.profile import Floats, Ints


def rounds(count: int) -> list[list[tuple[int, int]]]:
    """All pairs (a, b), a < b, of `count` series, in rounds in which each series comes once (of an odd number, one not
    at all)."""
    seats = count + count % 2
    table = []
    for turn in range(seats - 1):
        order = [0, *((turn + place) % (seats - 1) + 1 for place in range(seats - 1))]
        met = [(order[place], order[-1 - place]) for place in range(seats // 2)]
        table.append([(min(pair), max(pair)) for pair in met if max(pair) < count])
    return table


def runs(windows: Ints, gap: int) -> Iterator[tuple[int, int]]:
    """Stretches [first, stop) that hold all of `windows` (ascending), each further than `gap` from the next."""
    if len(windows):
        cuts = np.flatnonzero(np.diff(windows) > gap)
        for first, last in zip([0, *(cuts + 1)], [*cuts, len(windows) - 1], strict=True):
            yield int(windows[first]), int(windows[last]) + 1


def lowest(bounds: Floats, count: int, m: int) -> Ints:
    """The windows with the least bounds, at most `count`, none overlapping another by more than half."""
    chosen: list[int] = []
    most = min(4 * count * m, len(bounds))
    candidates = np.argpartition(bounds, most - 1)[:most]
    for index in candidates[np.argsort(bounds[candidates])].tolist():
        if len(chosen) == count or not np.isfinite(bounds[index]):
            break
        if all(abs(index - other) > m // 2 for other in chosen):
            chosen.append(index)
    return np.array(chosen, dtype=np.int64)
