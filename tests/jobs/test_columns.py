"""Reading stored columns without numpy, against numpy."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.columns import gaps, mapped
from app.jobs.checks.facts import finite_runs
from app.jobs.series import _inline_gaps

floats = st.lists(st.floats(width=64), max_size=40)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("columns") / "0.npy"


def runs(mask) -> list[tuple[int, int]]:
    """Where `mask` is true, as [start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask, [0]])))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


@given(floats)
def test_floats_come_back_bit_for_bit(path, values):
    np.save(path, np.array(values, dtype="<f8"))
    with mapped(path, "d") as column:
        assert len(column) == len(values)
        assert bytes(column) == np.array(values, dtype="<f8").tobytes()
        assert column.readonly


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_integers_and_their_slices_come_back(path, values, start, stop):
    np.save(path, np.array(values, dtype="<i8"))
    with mapped(path, "q") as column, column[start:stop] as part:
        assert list(part) == values[start:stop]


@pytest.mark.parametrize(
    ("array", "code"),
    [(np.zeros(3, "<i8"), "d"), (np.zeros(3, "<f8"), "q"), (np.zeros(3, ">f8"), "d"), (np.zeros(3, "<f4"), "d")],
)
def test_a_column_of_another_type_is_refused(path, array, code):
    np.save(path, array)
    with pytest.raises(ValueError, match="holds"), mapped(path, code):
        pass


def test_a_column_is_closed_with_its_block(path):
    np.save(path, np.arange(3.0))
    with mapped(path, "d") as column:
        pass
    with pytest.raises(ValueError, match="released"):
        column[0]


@given(floats, st.data())
def test_gaps_are_the_runs_without_a_finite_value_cut_to_the_stretch(path, values, data):
    array = np.array(values, dtype=float)
    kept = path.with_suffix(".gaps")
    kept.write_bytes(b"".join(struct.pack("<qq", *run) for run in runs(~np.isfinite(array))))
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    part = ~np.isfinite(array[start:stop])
    assert list(gaps(kept, start, stop)) == runs(part)
    assert finite_runs(stop - start, gaps(kept, start, stop)) == runs(~part)


@given(floats)
def test_values_sent_along_have_the_same_gaps_as_stored_ones(values):
    assert list(_inline_gaps(values)) == runs([not math.isfinite(value) for value in values])
