"""A profile held against the definition: wholly where that is cheap, by samples where it is dear."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from workers.matrix_profile.definition import Measure
from workers.matrix_profile.doubt import candidates
from workers.matrix_profile.profile import Bools, Floats, Ints, Profile, exclusion_zone
from workers.matrix_profile.tiles.pairs import Pairs
from workers.matrix_profile.verify import SEED, chosen_rows, finite
from workers.matrix_profile.windows import blocks

TOLERANCE: Final = 1e-6
"""How far a distance may be off, relative to itself, and normalised to sqrt(m)."""
BESIDE: Final = 1e-7
"""Not normalised, so much of a window's own length: tiles tell squared distances to 1e-10 of the squared lengths, and measure
those below 1e-6 of these."""


QUIET: Final = 1e6
"""A window so many times shorter than the longest is one that tiles compute in twice the precision."""


class Comparison:
    """A profile (k=1) and the windows it is of.

    measure: Shapes, or Norms with p=2.  pairs: the same, compiled.  rows: int64 (r,), those that are looked at where one
    glance is enough; a sample where all would take too long.
    """

    def __init__(self, profile: Profile, measure: Measure, pairs: Pairs, rows: Ints, *, self_join: bool) -> None:
        self.profile, self.measure, self.pairs, self.rows, self.self_join = profile, measure, pairs, rows, self_join
        self.zone = exclusion_zone(measure.a.m)

    def further(self, rows: Ints, one: Floats, other: Floats) -> Bools:
        """Where a distance of `rows` is larger than another by more than rounding, or infinite while that is not."""
        by, than = finite(one) - finite(other), finite(other)
        beyond = by > TOLERANCE * (than + self.measure.unit)
        if not self.pairs.normalize and beyond.any():
            which = np.flatnonzero(beyond)
            beyond[which] = by[which] > TOLERANCE * than[which] + BESIDE * self.lengths(rows[which])
        return np.asarray(np.where(np.isfinite(other), np.where(np.isfinite(one), beyond, ~np.isnan(one)), False))

    def lengths(self, rows: Ints) -> Floats:
        """Each window's deviations from its mean, taken together: float64 (r,)."""
        a, found = self.measure.a, np.empty(len(rows))
        for part in blocks(len(rows), a.m):
            apart = a.rows(rows[part])
            found[part] = np.linalg.norm(apart - apart.mean(axis=1, keepdims=True), axis=1)
        return found + np.finfo(np.float64).tiny  # below it no number is exact relative to itself

    def mistaken(self) -> Bools:
        """Rows whose neighbour is not as far away as they say, or is none, or is missing: bool (l,)."""
        profile, everywhere = self.profile, np.arange(self.profile.windows)
        named, said = profile.indices[:, 0], profile.distances[:, 0]
        wrong = (named >= 0) != np.isfinite(said)
        wrong |= (named < 0) & (candidates(self.measure, self_join=self.self_join) > 0)
        if self.self_join:
            wrong |= (named >= 0) & (np.abs(named - everywhere) <= self.zone)
            wrong |= profile.left >= np.maximum(everywhere - self.zone, 0)
            wrong |= (profile.right >= 0) & (profile.right <= everywhere + self.zone)
        rows = self.rows[~wrong[self.rows]]
        apart = self.pairs.distances(rows, named[rows])
        wrong[rows] = self.further(rows, apart, said[rows]) | self.further(rows, said[rows], apart)
        return np.asarray(wrong)

    def outdone(self) -> Bools:
        """Rows to which a window is nearer that another row knows: of its own neighbour, or one further than that of the
        row before, or one before that of the row after: bool (l,)."""
        named, said, last = self.profile.indices[:, 0], self.profile.distances[:, 0], self.profile.windows - 1
        outdone = np.zeros(last + 1, dtype=np.bool_)
        for step in (1, -1):
            rows = self.rows[(self.rows >= step) & (self.rows - step <= last)]
            beside = named[rows - step]
            offered = np.where(beside >= 0, beside + step, -1)
            new = (offered >= 0) & (offered < len(self.measure.b)) & (offered != named[rows]) & (said[rows] > 0)
            rows, offered = rows[new], offered[new]
            outdone[rows] |= self.further(rows, said[rows], self.pairs.distances(rows, offered))
        if self.self_join:
            there = np.flatnonzero((named >= 0) & (named <= last))
            outdone[named[there]] |= self.further(named[there], said[named[there]], said[there])
        return outdone

    def sample(self, count: int) -> Ints:
        """Rows at random; those a reader looks at; and those whose arithmetic is hardest, for they are the quietest, or
        quiet beside the liveliest, or just beside the largest value."""
        a = self.measure.a
        burst = int(np.abs(a.values).argmax())
        more = [burst + 1, burst - a.m]
        if self.pairs.normalize:
            shapes = self.pairs.a.shapes
            size = np.ldexp(shapes.inverse, np.minimum(np.frexp(shapes.factor)[1], 900))  # one over the length, about
            varied = np.flatnonzero(a.whole & (size > 0))
            if len(varied):
                more += varied[[size[varied].argmax(), size[varied].argmin()]].tolist()
                quiet = varied[size[varied] > QUIET * size[varied].min()]
                more += np.random.default_rng(SEED).choice(quiet, min(count, len(quiet)), replace=False).tolist()
        chosen = chosen_rows(self.profile, self.measure, count)
        return np.union1d(chosen, [row for row in more if 0 <= row < len(a) and a.whole[row]]).astype(np.int64)

    def looked_through(self, rows: Ints) -> tuple[int, float]:
        """How many of `rows` differ from the definition, and the largest difference of a distance."""
        if not len(rows):
            return 0, 0.0
        with ThreadPoolExecutor(self.pairs.a.threads) as pool:
            seen = list(pool.map(self._differs, rows.tolist()))
        return sum(wrong for wrong, _ in seen), max(apart for _, apart in seen)

    def _differs(self, row: int) -> tuple[bool, float]:
        """Whether a row, compared with all windows, is another than the profile has it, and by how much its distance is."""
        profile, end = self.profile, len(self.measure.b)
        sides = [(0, end, int(profile.indices[row, 0]))]
        if self.self_join:
            sides = [(0, row - self.zone, int(profile.left[row])), (row + self.zone + 1, end, int(profile.right[row]))]
        here, nearest, neighbor, wrong = np.array([row]), np.inf, -1, False
        for first, stop, named in sides:
            apart = float(self.pairs.distances(here, np.array([named]))[0])
            found, better = self.pairs.nearer(row, first, stop, apart)
            wrong |= better >= 0 and bool(self.further(here, np.array([apart]), np.array([found]))[0])
            if found < nearest:
                nearest, neighbor = found, named if better < 0 else better
        truth = np.inf if neighbor < 0 else self.measure.precisely(row, neighbor)
        said = float(profile.distances[row, 0])
        if not np.isfinite(said) or not np.isfinite(truth):
            return wrong or said != truth, 0.0
        one, other = np.array([said]), np.array([truth])
        wrong |= bool((self.further(here, one, other) | self.further(here, other, one))[0])
        return wrong, abs(said - truth)
