"""What reading may cost: bytes unpacked, columns, memory, seconds; and the child process as the server starts it."""

import gzip
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.datasets.reading_door import given, given_child

MIB = 1 << 20


def zip_of(size: int) -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", head.getvalue() + bytes(size))
    return out.getvalue()


def parquet_of(rows: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array(np.zeros(rows))}), out, compression="zstd")
    return out.getvalue()


BOMBS = {
    "gzip": gzip.compress(bytes(4 * MIB)),
    "gzip in gzip": gzip.compress(gzip.compress(bytes(4 * MIB))),
    "gzip of text": gzip.compress(b"1\n" * MIB),
    "npz": zip_of(4 * MIB),
    "parquet": parquet_of(MIB),
    "text as it is": b"1\n" * MIB,
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_what_unpacks_to_too_much_is_refused(data):
    assert "the limit here" in given(data, max_unpacked_bytes=MIB).error["detail"]


def test_a_zip_that_lies_about_its_size_is_refused():
    data = zip_of(2 * MIB)
    honest, lie = (2 * MIB + 128).to_bytes(4, "little"), (1000).to_bytes(4, "little")
    assert honest in data
    assert given(data.replace(honest, lie), max_unpacked_bytes=MIB).error["detail"]


WIDE = {
    "csv": "\n".join([",".join(["1.5"] * 50)] * 2),
    "npy": (lambda out: (np.save(out, np.zeros((2, 50))), out.getvalue())[1])(io.BytesIO()),
    "json": json.dumps({str(i): [1] for i in range(50)}),
}


@pytest.mark.parametrize("data", WIDE.values(), ids=WIDE)
def test_too_many_columns_are_refused(data):
    assert "columns" in given(data, max_columns=49).error["detail"]
    assert len(given(data, max_columns=50).ok["columns"]) == 50


def test_a_table_of_many_columns_needs_no_file_open_for_each():
    out = io.BytesIO()
    np.save(out, np.zeros((2, 1100)))
    assert len(given(out.getvalue(), max_columns=1100).ok["columns"]) == 1100


def test_a_wide_table_costs_little_for_each_column():
    names, row = ",".join(f"sensor{i}" for i in range(1000)), ",".join(["1.5"] * 1000)
    outcome = given_child("\n".join([names, *[row] * 20]), max_cpu_seconds=6)
    assert len(outcome.ok["columns"]) == 1000


def test_the_child_answers_as_the_function_does():
    text = "t;v\n2021-01-01;1,5\n2021-01-02;\n"
    assert given_child(text, file_name="a.csv") == given(text, file_name="a.csv")
    assert given_child("a,b\n1,x2\n3,4\n5,6\n") == given("a,b\n1,x2\n3,4\n5,6\n")


def test_the_child_refuses_what_needs_more_memory_than_it_may_have():
    rows = json.dumps([{"a": number} for number in range(10)])[1:-1]
    data = "[" + ",".join([rows] * 400_000) + "]"
    error = given_child(data, max_memory_bytes=600 * MIB, max_unpacked_bytes=128 * MIB).error
    assert "memory" in error["detail"]


def test_the_child_refuses_what_takes_too_long():
    data = gzip.compress(b"1.5,foo,2021-01-01\n" * 2_000_000, 1)
    error = given_child(data, max_cpu_seconds=1).error
    assert "seconds of computing" in error["detail"]


def test_the_child_reads_much_text_in_little_memory():
    data = "a,b\n" + "1.25,-3.5\n" * 1_000_000
    outcome = given_child(data, max_memory_bytes=640 * MIB)
    assert outcome.ok["rows"] == 1_000_000
