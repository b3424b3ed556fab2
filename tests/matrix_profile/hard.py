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
    "only gaps": np.full(60, np.nan),
}
