"""Checking a multidimensional profile against the definition, and mending what running sums got wrong.

STUMPY runs a sum on from row to row, uncentred, so its error is that of the largest values a dimension ever had. As in
verify.py, every pair named is measured again. Which rows have suffered otherwise is found out by looking: those that
can suffer most are compared in full, and on until none differs; a row computed anew is also offered to all others.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from workers.matrix_profile.dimensions import Dimensions, MultiProfile
from workers.matrix_profile.doubt import CORRELATION_TOLERANCE, PAIR_TOLERANCE
from workers.matrix_profile.profile import Floats, Ints
from workers.matrix_profile.verify import PERFECT_ROWS, SAMPLED_ROWS, SEED, Unverifiable, allowed_rows, finite, settle
from workers.reporting import Reporter

BATCH: Final = 12
"""Rows at risk that are compared at a time, at first."""


def verify(
    profile: MultiProfile, space: Dimensions, worth: Floats, *, seconds: float, report: Reporter
) -> dict[str, Any]:
    """Mend `profile` in place and say how well it agrees with the definition, as verify.verify does.

    worth: float64 (r, l), by r measures, how well each row stands above the error of a running sum: the least of its
    deviations beside the largest value of that dimension, or its distances.
    """
    mending = _Mending(profile, space)
    wrong = mending.remeasure()
    allowed = allowed_rows(seconds, space.seconds_per_row)
    if len(wrong) > allowed:
        raise Unverifiable(
            f"rounding spoilt the neighbours of {len(wrong)} of {space.windows} windows, and computing them anew would "
            "take too long. Send shorter series, or series without bursts and sentinels."
        )
    mending.wrong.update(wrong.tolist())
    for row in wrong:
        mending.renew(int(row))
    mending.look_on(worth, allowed)
    if mending.wrong:
        report.warning(
            f"rounding had spoilt the neighbours of {len(mending.wrong)} windows; {len(mending.done)} were computed "
            "again, exactly",
            wrong=len(mending.wrong),
            recomputed=len(mending.done),
        )
    rows = chosen_rows(profile, space)
    differing, largest = compare(profile, space, rows)
    if differing:
        settle(differing, len(rows), space.windows, allowed, report)
        for row in np.flatnonzero(mending.alive):
            mending.renew(int(row))
        differing, largest = compare(profile, space, rows)
        if differing:
            raise Unverifiable(f"{differing} of {len(rows)} rows differ from the definition also when computed from it")
    checked = len(np.union1d(rows, np.array(sorted(mending.done), dtype=np.int64)))
    return {"rows_checked": checked, "max_abs_difference": largest, "rows_recomputed": len(mending.wrong)}


@dataclass
class _Mending:
    profile: MultiProfile
    space: Dimensions
    done: set[int] = field(default_factory=set)
    """Rows computed anew."""
    wrong: set[int] = field(default_factory=set)
    """Of these, the ones that had been wrong."""

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

    def renew(self, i: int) -> bool:
        """Compute row i from the definition, put it in place, and offer window i to all others. Returns whether it was wrong."""
        row = self.space.row(i)
        distances, indices = self.space.nearest(i, row)
        differs = _differ(self.profile.distances[:, i], distances, self.space.unit)
        self.profile.distances[:, i], self.profile.indices[:, i] = distances, indices
        self._offer(i, row)
        self.done.add(i)
        if differs.any():
            self.wrong.add(i)
        return bool(differs.any())

    def _offer(self, i: int, row: Floats) -> None:
        """The distance is the same from both sides: who is nearer to window i than to its neighbour takes it."""
        nearer = row < self.profile.distances * (1 - PAIR_TOLERANCE) - self.space.unit * PAIR_TOLERANCE
        for number in np.flatnonzero(nearer.any(axis=1)):
            others = np.flatnonzero(nearer[number])
            exact = self.space.pairs(others, np.full(len(others), i))[number]
            better = exact < self.profile.distances[number, others]
            self.profile.distances[number, others[better]] = exact[better]
            self.profile.indices[number, others[better]] = i

    def look_on(self, worth: Floats, allowed: int) -> None:
        """Compare the rows at risk, twice as many each time, until all of a batch were right."""
        queue = _by_risk(worth, self.alive)
        queue = queue[~np.isin(queue, list(self.done))]
        size = BATCH
        while len(queue):
            if len(self.done) >= allowed + BATCH:
                raise Unverifiable(
                    f"{len(self.wrong)} of {len(self.done)} windows compared with the definition had wrong neighbours, "
                    f"and {len(queue)} more are in doubt. Send shorter series, or series without bursts and sentinels."
                )
            batch, queue = queue[:size], queue[size:]
            if not sum(self.renew(int(row)) for row in batch):
                return
            size = min(2 * size, max(BATCH, allowed - len(self.done)))


def _by_risk(worth: Floats, alive: Any) -> Ints:
    """Rows worth least first, in turn by each measure of worth, and from the later half: errors grow along the series."""
    orders = [
        order[np.isfinite(each[order]) & alive[order]] for each in worth for order in [np.argsort(each, kind="stable")]
    ]
    turns = [turn for order in orders for turn in (order, order[order >= len(alive) // 2])]
    mixed = np.full((max(len(turn) for turn in turns), len(turns)), -1)
    for number, turn in enumerate(turns):
        mixed[: len(turn), number] = turn
    rows, first = np.unique(mixed, return_index=True)
    order = np.argsort(first)
    return np.asarray(rows[order][rows[order] >= 0], dtype=np.int64)


def chosen_rows(profile: MultiProfile, space: Dimensions) -> Ints:
    """Rows at random, and for each number of dimensions the motif, the discord and some perfect matches."""
    named: list[int] = []
    for distances in profile.distances:
        found = np.isfinite(distances)
        if found.any():
            named += [int(distances.argmin()), int(np.where(found, distances, -np.inf).argmax())]
            named += [int(i) for i in np.flatnonzero(distances == 0.0)[:PERFECT_ROWS]]
    whole = np.flatnonzero(np.any([each.a.whole for each in space.measures], axis=0))
    drawn = np.random.default_rng(SEED).choice(whole, min(SAMPLED_ROWS, len(whole)), replace=False)
    return np.unique(np.concatenate([np.array(named, dtype=np.int64), drawn]))


def compare(profile: MultiProfile, space: Dimensions, rows: Ints) -> tuple[int, float]:
    """How many of `rows` differ from the definition, and the largest difference."""
    differing, largest = 0, 0.0
    for i in rows:
        truth, indices = space.nearest(int(i), space.row(int(i)))
        for number in {0, len(truth) // 2, len(truth) - 1}:
            if indices[number] >= 0:
                truth[number] = space.precisely(int(i), int(indices[number]))[number]
        ours = profile.distances[:, i]
        differing += bool(_differ(ours, truth, space.unit).any())
        largest = max(largest, float(np.abs(finite(ours) - finite(truth)).max()))
    return differing, largest


def _differ(ours: Floats, truth: Floats, unit: float) -> Any:
    apart = np.abs(finite(ours) - finite(truth)) > unit * PAIR_TOLERANCE + 1e-6 * finite(truth)
    return apart | (np.isfinite(ours) != np.isfinite(truth))
