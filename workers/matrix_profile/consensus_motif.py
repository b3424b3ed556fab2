"""The window that a search for a consensus found, by itself: its neighbours as defined, and that none has a lesser radius."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from workers.matrix_profile.base import Checked
from workers.matrix_profile.distance import Distance
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.radii import Radii
from workers.matrix_profile.treatment import Treated
from workers.matrix_profile.verify import SEED, Unverifiable, tolerance
from workers.matrix_profile.windows import Windows

SAMPLED_WINDOWS: Final = 8
TIE: Final = 1.1e-5
"""Radii this near to each other, relative, are equal to STUMPY, which then takes the window nearer on average."""
NEAR: Final = 1e-7
"""Times sqrt(m): a correlation tells windows that are nearer from equal ones only just."""
TINY: Final = 1e-150
"""Equal windows are nearer than this, whatever the distance."""


@dataclass(frozen=True)
class Motif:
    """A window and its nearest in each series: distances float64 (k,) in the units of the series, 0 in its own, and where
    they are, int64 (k,)."""

    number: int
    index: int
    distances: Floats
    neighbors: Ints

    @property
    def radius(self) -> float:
        return float(self.distances.max())


class Witness:
    """Looks at windows by themselves, each pair from its own two: to check what tiles say, and to say what is found.

    windows: of the series as they came.
    """

    def __init__(self, radii: Radii, windows: list[Windows], treated: Treated, distance: Distance) -> None:
        self.radii, self.windows, self.treated, self.distance = radii, windows, treated, distance
        self.slack = 1e-8 * radii.m**0.5 if radii.normalize else 0.0  # what equal radii may differ by, absolutely
        self.checked, self._random = Checked(), np.random.default_rng(SEED)

    def agree(self, a: int, b: int, distances: Floats) -> None:
        """Two windows that `b` was looked through for, the nearest one and one at random, by themselves."""
        radii = self.radii
        wanted = np.flatnonzero(radii.bounds[a] < radii.radius)
        if not len(wanted):
            return
        for row in {int(distances.argmin()), int(self._random.choice(wanted))} & set(wanted.tolist()):
            truth, neighbor = radii.pairs(a, b).nearer(row, 0, len(self.windows[b]), radii.radius)
            ours = min(float(distances[row]), radii.radius)
            if (
                abs(ours - truth)
                > tolerance(self.distance.measure(self.windows[a], self.windows[b]), np.array([truth]))[0]
            ):
                raise Unverifiable(
                    f"window {row} of series {a} is {ours!r} from its nearest in series {b}, and {neighbor} is nearer"
                )
            apart = float(self.treated.distances(np.asarray(abs(ours - truth))))
            self.checked.add({"rows_checked": 1, "max_abs_difference": apart, "rows_recomputed": 0})

    def central(self) -> Motif:
        """Of the window found and its neighbours, whose radii may be equal, the one that is nearer to the others on average."""
        radii = self.radii
        best = self.nearest(radii.number, radii.index, radii.radius * (1 + 1e-9))
        if best is None:
            raise Unverifiable(f"window {radii.index} of series {radii.number} has no radius of {radii.radius!r}")
        least = best.radius
        within, number = float(self.treated.back(np.asarray(least * (1 + TIE) + self.slack))), best.number
        for other in np.flatnonzero(best.distances >= least * (1 - TIE) - self.slack).tolist():
            its = self.nearest(other, int(best.neighbors[other]), within) if other != number else None
            if its is not None and float(its.distances.mean()) < float(best.distances.mean()):
                best = its
        return best

    def nearest(self, number: int, index: int, within: float) -> Motif | None:
        """A window with its neighbours, if all are nearer than `within`, in the units of the treated series."""
        distances, neighbors = np.zeros(len(self.windows)), np.full(len(self.windows), index, dtype=np.int64)
        reach = max(within, NEAR * self.radii.m**0.5 if self.radii.normalize else TINY)
        for other, windows in enumerate(self.windows):
            if other == number:
                continue
            _, neighbor = self.radii.pairs(number, other).nearer(index, 0, len(windows), reach)
            if neighbor < 0:
                return None
            neighbors[other] = neighbor
            distances[other] = self.distance.measure(self.windows[number], windows).precisely(index, neighbor)
        return Motif(number, index, distances, neighbors)

    def check(self, motif: Motif) -> None:
        """The radius found must be the motif's, and no window taken at random may have a lesser one."""
        claimed = float(self.treated.distances(np.asarray(self.radii.radius)))
        apart = abs(claimed - motif.radius)
        if apart > TIE * motif.radius + self.slack:
            raise Unverifiable(
                f"the consensus was found with radius {claimed!r}, but the definition gives {motif.radius!r}"
            )
        below = float(self.treated.back(np.asarray(motif.radius * (1 - TIE) - self.slack)))
        for number in self._random.integers(len(self.windows), size=SAMPLED_WINDOWS).tolist():
            index = int(self._random.choice(np.flatnonzero(self.windows[number].whole)))
            found = self.nearest(number, index, below) if below > 0 else None
            if found is not None and found.radius < motif.radius * (1 - TIE) - self.slack:
                raise Unverifiable(
                    f"window {index} of series {number} has a radius of {found.radius!r}, less than the "
                    f"{motif.radius!r} of the claimed consensus, window {motif.index} of series {motif.number}"
                )
        self.checked.add({"rows_checked": 1 + SAMPLED_WINDOWS, "max_abs_difference": apart, "rows_recomputed": 0})
