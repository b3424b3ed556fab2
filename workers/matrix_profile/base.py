"""STUMPY's base function as its composed ones call it: treated series in, a profile verified against the definition out.

`mpdist`, `ostinato`, `stimp` and their kin look their base function up as a global of their module. A job has a process
of its own, so for its time that global is ours: it computes the same profile by STUMPY's base function of the job's
backend, mends it, and hands it back. What STUMPY then makes of the profiles is made of right ones.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workers.failures import JobFailure
from workers.matrix_profile import through_stumpy
from workers.matrix_profile.frame import Distance
from workers.matrix_profile.ground import Ground
from workers.matrix_profile.profile import Profile
from workers.matrix_profile.series import Series
from workers.matrix_profile.treatment import Treated
from workers.matrix_profile.verify import SAMPLED_ROWS, verify
from workers.matrix_profile.windows import Windows
from workers.reporting import Reporter


class Bypassed(JobFailure):
    """STUMPY did not build this result on verified profiles: it is not the version this was written for."""


@dataclass
class Checked:
    """The verification of a result made of several profiles."""

    rows_checked: int = 0
    max_abs_difference: float = 0.0
    rows_recomputed: int = 0

    def add(self, checked: Mapping[str, Any]) -> None:
        self.rows_checked += checked["rows_checked"]
        self.rows_recomputed += checked["rows_recomputed"]
        self.max_abs_difference = max(self.max_abs_difference, checked["max_abs_difference"])

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class Base:
    """Joins between the series of one job, in the units of the treated series.

    takes_client: whether callers send a client first, as they do to `stumped`; ours is made anew for each call, since
    its number of pieces is that call's.
    """

    series: Sequence[Series]
    treated: Treated
    distance: Distance
    ground: Ground
    takes_client: bool = False
    sampled: int = SAMPLED_ROWS
    calls: int = 0
    pieces: int = 0
    checked: Checked = field(default_factory=Checked)
    _windows: dict[tuple[int, int], Windows] = field(default_factory=dict)
    nearest: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """series and window length → the row of its join with the least distance, and that row's neighbour"""
    _known: dict[int, tuple[Any, int]] = field(default_factory=dict)
    """id of an array STUMPY holds → that array, and which series it stands for"""

    def __post_init__(self) -> None:
        for number, values in enumerate(self.treated.series):
            self.know(values, number)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Stands in for `stump` and its kin. The keywords (normalize, p, constant windows) are the job's, as we have them."""
        a, m, *b = arguments[1:] if self.takes_client else arguments
        return self.join(self.number(a), self.number(b[0]) if b else None, int(m))

    def know(self, values: Any, number: int) -> None:
        """An array that stands for a series."""
        self._known[id(values)] = (values, number)

    def number(self, values: Any) -> int:
        if id(values) not in self._known:
            raise Bypassed("STUMPY asked for the profile of a series that is none of the job's")
        return self._known[id(values)][1]

    def windows(self, number: int, m: int) -> Windows:
        """The windows of one series as it came; kept for one window length at a time."""
        if (number, m) not in self._windows:
            self._windows = {key: kept for key, kept in self._windows.items() if key[1] == m}
            self._windows[number, m] = Windows(self.series[number].values, m)
        return self._windows[number, m]

    def join(self, a: int, b: int | None, m: int) -> Any:
        """The profile of series `a` in series `b`, or in itself: (l, 4) float64, columns as STUMPY has them."""
        treated = self.treated.series
        measure = self.distance.measure(self.windows(a, m), None if b is None else self.windows(b, m))
        done = through_stumpy.compute(
            treated[a],
            None if b is None else treated[b],
            m,
            normalize=self.distance.normalize,
            p=self.distance.p,
            k=1,
            ground=self.ground,
        )
        profile = done.profile
        profile.distances = self.treated.distances(profile.distances)
        self.checked.add(
            verify(
                profile,
                measure,
                self_join=b is None,
                seconds=done.seconds,
                report=self.ground.report,
                sampled=self.sampled,
            )
        )
        self.taken(a, m, profile, done.pieces)
        return np.column_stack([self.treated.back(profile.distances), profile.indices, profile.left, profile.right])

    def taken(self, a: int, m: int, profile: Profile, pieces: int) -> None:
        """A verified profile was handed to STUMPY."""
        self.calls += 1
        self.pieces += pieces
        row = int(profile.distances[:, 0].argmin())
        self.nearest[a, m] = (row, int(profile.indices[row, 0]))

    def require_calls(self, least: int, function: str) -> None:
        if self.calls < least:
            raise Bypassed(f"{function} asked for {self.calls} verified profiles where it needs {least}")


def spans(base: Base, windows: Sequence[tuple[int, int | None, int]]) -> int:
    """The pieces of these joins (a, b, m), all together."""
    treated, total = base.treated.series, 0
    for a, b, m in windows:
        other = None if b is None else treated[b]
        total += through_stumpy.plan(treated[a], other, m, normalize=base.distance.normalize, k=1, ground=base.ground)[
            1
        ]
    return total


class Onward:
    """A reporter that tells the pieces of one join after the other as pieces of the whole job, or does not tell them."""

    def __init__(self, report: Reporter, total: int | None) -> None:
        self._report, self._total, self._before, self._done = report, total, 0, 0

    def progress(
        self, done: int, total: int, unit: str, eta_seconds: float | None = None, fraction: float | None = None
    ) -> None:
        if self._total is None:
            return
        if done <= self._done:
            self._before += self._done  # the join before is over
        self._done = done
        self._report.progress(min(self._before + done, self._total), self._total, unit, None)

    def phase(self, name: str) -> None:
        self._report.phase(name)

    def warning(self, message: str, **data: Any) -> None:
        self._report.warning(message, **data)

    def log(self, message: str) -> None:
        self._report.log(message)


def onward(ground: Ground, total: int | None) -> Ground:
    return replace(ground, report=Onward(ground.report, total))


@contextmanager
def injected(module: str, **replacements: Any) -> Iterator[None]:
    """Replace globals of one of STUMPY's modules for a while. Raises Bypassed where it has no such global."""
    home = importlib.import_module(f"stumpy.{module}")
    originals = {}
    for name in replacements:
        if not hasattr(home, name):
            raise Bypassed(f"stumpy.{module} has no {name}")
        originals[name] = getattr(home, name)
    try:
        for name, ours in replacements.items():
            setattr(home, name, ours)
        yield
    finally:
        for name, original in originals.items():
            setattr(home, name, original)


def home_of(function: Any) -> str:
    """The module of STUMPY's that a function looks its base up in."""
    return str(function.__module__).removeprefix("stumpy.")
