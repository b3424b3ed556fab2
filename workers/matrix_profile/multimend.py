"""Rows of a multidimensional profile measured or computed again, and put in place."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from workers.matrix_profile.dimensions import Dimensions, MultiProfile
from workers.matrix_profile.doubt import CORRELATION_TOLERANCE, PAIR_TOLERANCE
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.verify import finite

BLOCK: Final = 1 << 21
"""Distances held at once: 16 MiB."""

SLACK: Final = 3e-8
"""A distance out of a row of correlations is off by less than this, relative to sqrt(m)."""


@dataclass
class Mending:
    """done: rows computed anew.  wrong: of these, the ones that had been wrong."""

    profile: MultiProfile
    space: Dimensions
    done: set[int] = field(default_factory=set)
    wrong: set[int] = field(default_factory=set)

    @property
    def alive(self) -> Any:
        """Windows that are whole in some dimension."""
        return np.any([each.a.whole for each in self.space.measures], axis=0)

    def remeasure(self) -> Ints:
        """Exact distances for all pairs named. Returns the rows with a pair that was not as far apart as computed."""
        profile, spoilt = self.profile, np.zeros(self.space.windows, dtype=np.bool_)
        for number, (distances, indices) in enumerate(zip(profile.distances, profile.indices, strict=True)):
            spoilt |= np.isnan(distances)
            there = np.flatnonzero(indices >= 0)
            exact = self.space.pairs(there, indices[there])[number]
            spoilt[there] |= self._off(distances[there], exact)
            distances[there] = exact
            distances[np.isnan(distances)] = np.inf
            indices[~np.isfinite(distances)] = -1
        return np.flatnonzero(spoilt)

    def _off(self, before: Floats, now: Floats) -> Any:
        if not self.space.unit:
            return ~(np.abs(now - before) <= PAIR_TOLERANCE * np.maximum(np.abs(now), np.abs(before)))
        return ~(np.abs(now**2 - before**2) <= 2 * self.space.unit**2 * CORRELATION_TOLERANCE)

    def renew(self, rows: Ints, *, offer: bool) -> None:
        """Compute these rows from the definition and put them in place.

        offer: let these windows become neighbours of all others too; of no use where all rows are computed.
        """
        space, profile = self.space, self.profile
        offer = offer and len(rows) < int(np.count_nonzero(self.alive))
        step = max(1, min(256, BLOCK // (len(space.measures) * space.windows)))
        for part in (rows[start : start + step] for start in range(0, len(rows), step)):
            apart = space.rows(part)
            distances, indices = space.nearest(part, apart)
            differs = differ(profile.distances[:, part], distances, space.unit).any(axis=0)
            profile.distances[:, part], profile.indices[:, part] = distances, indices
            self.done.update(part.tolist())
            self.wrong.update(part[differs].tolist())
            if offer:
                for number, i in enumerate(part):
                    self._offer(int(i), apart[number])

    def _offer(self, i: int, row: Floats) -> None:
        """The distance is the same from both sides: who is nearer to window i than to its neighbour takes it."""
        nearer = (row < self.profile.distances + self.space.unit * SLACK) & (self.profile.indices != i)
        for number in np.flatnonzero(nearer.any(axis=1)):
            others = np.flatnonzero(nearer[number])
            exact = self.space.pairs(others, np.full(len(others), i))[number]
            better = exact < self.profile.distances[number, others]
            self.profile.distances[number, others[better]] = exact[better]
            self.profile.indices[number, others[better]] = i


def differ(ours: Floats, truth: Floats, unit: float) -> Any:
    """Where distances are not the same."""
    apart = np.abs(finite(ours) - finite(truth)) > unit * PAIR_TOLERANCE + 1e-6 * finite(truth)
    return apart | (np.isfinite(ours) != np.isfinite(truth))
