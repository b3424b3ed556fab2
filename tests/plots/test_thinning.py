"""Fewer points, the same picture."""

import numpy as np

from workers.plots.thinning import thinned


def test_thinning_keeps_every_peak_and_every_wide_gap():
    values = np.zeros(1_000_003)
    values[654_321], values[700_000:800_000], values[100] = 9.0, np.nan, np.inf
    rows, drawn = thinned(values, 500)
    assert len(rows) == len(drawn) <= 2100
    assert drawn[np.nanargmax(drawn)] == 9.0
    assert abs(rows[np.nanargmax(drawn)] - 654_321) < 1000
    assert np.isnan(drawn[(rows > 701_000) & (rows < 799_000)]).all()
    assert np.isfinite(drawn[rows < 699_000]).all()
    assert (np.diff(rows) >= 0).all()
