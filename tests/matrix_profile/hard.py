"""Series on which arithmetic is hard, and ordinary ones."""

import numpy as np

RNG = np.random.default_rng(7)
WALK = RNG.standard_normal(150).cumsum()
OTHER = RNG.standard_normal(110).cumsum()
NOISE = RNG.standard_normal(150)


def with_(values, at, value):
    changed = np.array(values, dtype=np.float64)
    changed[at] = value
    return changed


def ulps(count, level, seed):
    """Values that differ from `level` by at most a few units in their last place."""
    return level + np.round(np.random.default_rng(seed).standard_normal(count) * 2) * np.spacing(level)


def shares(count):
    """Three shares of a whole, added up: 1 but for rounding."""
    parts = np.random.default_rng(1).random((count, 3))
    return (parts / parts.sum(axis=1, keepdims=True)).sum(axis=1)


def quiet(amplitude):
    """A walk with a stretch of this amplitude on a level of 21.3."""
    rng = np.random.default_rng(3)
    return with_(20 + rng.standard_normal(150).cumsum(), slice(40, 110), 21.3 + amplitude * rng.standard_normal(70))


HARD = {
    "a gap": with_(WALK, slice(60, 63), np.nan),
    "an infinity": with_(WALK, 70, np.inf),
    "a negative infinity at the end": with_(WALK, -1, -np.inf),
    "constant stretches": with_(with_(WALK, slice(20, 50), 3.25), slice(90, 120), -1.0),
    "all constant": np.full(60, 0.1),
    "offset 1e8": NOISE + 1e8,
    "offset 1e9, small signal": NOISE * 1e-3 + 1e9,
    "amplitude 1e-8": WALK * 1e-8,
    "values of 1e160": WALK * 1e160,
    "values of 1e-160": WALK * 1e-160,
    "values near the largest": WALK / np.abs(WALK).max() * 1.7e308,
    "subnormal values": np.round(NOISE * 1000) * 5e-324,
    "identical windows": np.tile(NOISE[:30], 5),
    "a sine": np.sin(np.arange(150) / 3),
    "one sentinel": with_(NOISE, 75, 999999999.0),
    "one burst of 1e8, then quiet": with_(NOISE * 1e-3, slice(5, 9), [1e8, -1e8, 5e7, 1e8]),
    "lively, then nearly flat": np.concatenate([NOISE[:70] * 1e3, NOISE[70:] * 1e-6]),
    "a level that jumps": NOISE + np.where(np.arange(150) < 80, 0.0, 1e7),
    "shares that sum to one": shares(150),
    "ulps of a level": ulps(150, 1.0, 2),
    "ulps in a stretch": with_(WALK, slice(50, 100), ulps(50, 100.0, 4)),
    "quiet as 1e-13": quiet(1e-13),
    "quiet as 1e-14": quiet(1e-14),
    "quiet as 1e-15": quiet(1e-15),
    "only gaps": np.full(60, np.nan),
}
