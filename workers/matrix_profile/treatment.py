"""Shifting and scaling series so that STUMPY's arithmetic stays far from its weak spots; the distances do not change.

A z-normalised distance forgets offset and amplitude, so each series is centred and scaled on its own. A p-norm
forgets the offset only if all series lose the same one, and follows the amplitude: one power of two for all series of
a job, and the distances are multiplied back. Powers of two change no digit. Every backend gets the treated series.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.failures import InvalidInput
from workers.matrix_profile.profile import Floats

HEADROOM_BITS = 600
"""m·|difference|^p must stay below 2^1024; p times the exponent is kept under this."""

LARGEST_BITS = 990
"""The p-norm of a difference of two windows of 2^33 values below 2^990 is still a finite number."""


@dataclass(frozen=True)
class Treated:
    """Series ready for STUMPY, how to turn its distances back (`· 2^exponent`), and what was done, for provenance."""

    series: list[Floats]
    exponent: int
    described: dict[str, Any]

    @property
    def joined(self) -> tuple[Floats, Floats | None]:
        """The series of a join: one with itself, or one with another."""
        return self.series[0], self.series[1] if len(self.series) > 1 else None

    def distances(self, found: Floats) -> Floats:
        """Distances between treated series as distances between the series as they came."""
        return np.asarray(np.ldexp(found, self.exponent))

    def back(self, distances: Floats) -> Floats:
        """The other way."""
        return np.asarray(np.ldexp(distances, -self.exponent))


def treat(series: Sequence[Floats], *, normalize: bool, p: float) -> Treated:
    """Prepare all series of a job, each float64 (n,). Non-finite values stay where they are.

    A window of equal values stays one of equal values, so STUMPY's own look for constant windows finds all of them.
    """
    return _for_shapes(series) if normalize else _for_norms(series, p)


def _for_shapes(series: Sequence[Floats]) -> Treated:
    done = [_centred(each) for each in series]
    described = {"centred": [offset for _, offset, _ in done], "scaled_by_two_to": [e for _, _, e in done]}
    return Treated([values for values, _, _ in done], 0, described)


def _for_norms(series: Sequence[Floats], p: float) -> Treated:
    largest = max(_exponent(each) for each in series)
    if largest > LARGEST_BITS:
        raise InvalidInput("values beyond 1e298 have p-norm distances no 64-bit number holds; divide the series first")
    shift = min(40, int(HEADROOM_BITS / p)) - largest - 1  # a difference has one bit more than the values
    described = {"centred": None, "scaled_by_two_to": shift}
    return Treated([np.ldexp(each, shift) for each in series], -shift, described)


def _centred(values: Floats) -> tuple[Floats, float, int]:
    """(values - mean) · 2^e with the largest near 1, the mean and e. Subtracts before it amplifies."""
    first = -_exponent(values)
    scaled = np.ldexp(values, first)  # no sum overflows from here on
    finite = np.isfinite(scaled)
    offset = float(scaled[finite].mean()) if finite.any() else 0.0
    scaled -= offset
    second = -_exponent(scaled)
    return np.ldexp(scaled, second), float(np.ldexp(offset, -first)), first + second


def _exponent(values: Floats) -> int:
    """e with the largest finite |value| in [2^(e-1), 2^e); 0 for a series of zeros or without finite values."""
    finite = np.abs(values[np.isfinite(values)])
    return int(np.frexp(finite.max(initial=0.0))[1])
