"""Shifting and scaling a series so that STUMPY's arithmetic stays far from its weak spots; the distances do not change.

A z-normalised distance forgets offset and amplitude, so each series is centred and scaled on its own. A p-norm
forgets the offset only if both series lose the same one, and follows the amplitude: one power of two for both, and the
distances are multiplied back. Powers of two change no digit.
"""

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

    a: Floats
    b: Floats | None
    exponent: int
    described: dict[str, Any]


def treat(a: Floats, b: Floats | None, *, normalize: bool, p: float) -> Treated:
    """Prepare one self-join (`b` is None) or AB-join. Non-finite values stay where they are."""
    return _for_shapes(a, b) if normalize else _for_norms(a, b, p)


def _for_shapes(a: Floats, b: Floats | None) -> Treated:
    done = [_centred(each) for each in (a, b) if each is not None]
    described = {"centred": [offset for _, offset, _ in done], "scaled_by_two_to": [e for _, _, e in done]}
    return Treated(done[0][0], done[1][0] if b is not None else None, 0, described)


def _for_norms(a: Floats, b: Floats | None, p: float) -> Treated:
    largest = max(_exponent(a), _exponent(a if b is None else b))
    if largest > LARGEST_BITS:
        raise InvalidInput("values beyond 1e298 have p-norm distances no 64-bit number holds; divide the series first")
    shift = min(40, int(HEADROOM_BITS / p)) - largest - 1  # a difference has one bit more than the values
    other = None if b is None else np.ldexp(b, shift)
    return Treated(np.ldexp(a, shift), other, -shift, {"centred": None, "scaled_by_two_to": shift})


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
