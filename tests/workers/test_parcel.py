"""Parcels: values in anonymous memory, mapped by whoever holds the descriptor."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workers.spread.parcel import ALIGNMENT, Parcel


@given(
    st.lists(
        arrays.arrays(
            st.sampled_from([np.float64, np.int64, np.bool_]), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)
        )
    )
)
def test_what_goes_in_comes_out(values):
    with np.errstate(invalid="ignore"):
        for before, after in zip(values, Parcel.of(values).open(), strict=True):
            assert after.dtype == before.dtype
            np.testing.assert_array_equal(after, before)


def test_arrays_are_mapped_aligned_and_writable_without_touching_the_parcel():
    parcel = Parcel.of({"a": np.arange(5.0), "name": "x", "b": np.arange(1000)})
    first, second = parcel.open(), parcel.open()
    assert first["a"].ctypes.data % ALIGNMENT == 0
    assert first["a"].flags.writeable
    first["a"][:] = -1
    assert list(second["a"]) == [0, 1, 2, 3, 4]
    assert list(parcel.open()["a"]) == [0, 1, 2, 3, 4]


def test_a_parcel_sent_over_a_cluster_arrives_as_a_parcel():
    sent: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(Parcel.of(np.arange(10)), protocol=5, buffer_callback=sent.append)
    there = pickle.loads(stream, buffers=[bytes(buffer.raw()) for buffer in sent])
    assert list(there.open()) == list(range(10))


def test_another_process_maps_it_by_its_descriptor():
    parcel = Parcel.of(np.arange(3))
    program = f"from workers.spread.parcel import Parcel; print(Parcel({parcel.descriptor}).open().sum())"
    told = subprocess.run(
        [sys.executable, "-c", program], pass_fds=[parcel.descriptor], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "3"


def test_its_memory_goes_with_its_last_holder():
    parcel = Parcel.of(np.zeros(1000))
    descriptor = parcel.descriptor
    values = parcel.open()
    del parcel
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert values.sum() == 0  # mapped for as long as somebody looks
