"""Parquet, NPY, NPZ, JSON and gzip: typed columns, and everything a hostile or unlucky file may hold."""

import gzip
import io
import json
import math
import pickle
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.datasets.reading_door import given

NAN = math.nan


def parquet(**columns: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def npy(array: np.ndarray, **how: bool) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **how)
    return out.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def zipped(**entries: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


MONTH = [datetime(2021, 1, 1, tzinfo=UTC), datetime(2021, 2, 1, tzinfo=UTC)]
TYPED = {
    "parquet numbers": (
        parquet(
            a=pa.array([1, None], pa.int16()),
            b=pa.array([1.5, 2.5], pa.float32()),
            c=pa.array([0.5, NAN], pa.float16()),
            d=pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            e=pa.array([2**63, 1], pa.uint64()),
            f=pa.array([1, 2]).dictionary_encode(),
        ),
        {"a": [1, NAN], "b": [1.5, 2.5], "c": [0.5, NAN], "d": [1.25, NAN], "e": [2.0**63, 1], "f": [1, 2]},
        None,
    ),
    "parquet timestamps": (parquet(t=pa.array(MONTH, pa.timestamp("ns", "UTC")), v=pa.array([1, 2])), {"v": [1, 2]}, "t"),
    "parquet dates": (parquet(t=pa.array([date(2021, 1, 1)], pa.date32()), v=pa.array([1])), {"v": [1]}, "t"),
    "parquet text times": (parquet(t=pa.array(["2021-01-01"]), v=pa.array([1])), {"v": [1]}, "t"),
    "parquet text and truth": (
        parquet(s=pa.array(["x", "y"]).dictionary_encode(), b=pa.array([True, None]), v=pa.array([1, 2])),
        {"v": [1, 2]},
        None,
    ),
    "npy vector": (npy(np.array([1, 2, 3])), {"column_0": [1, 2, 3]}, None),
    "npy big-endian": (npy(np.array([1.5, NAN], ">f4")), {"column_0": [1.5, NAN]}, None),
    "npy half": (npy(np.array([1.5], "f2")), {"column_0": [1.5]}, None),
    "npy long double": (npy(np.array([1.5], np.longdouble)), {"column_0": [1.5]}, None),
    "npy table": (npy(np.array([[1.0, 2], [3, 4]])), {"column_0": [1, 3], "column_1": [2, 4]}, None),
    "npy table by columns": (
        npy(np.asfortranarray([[1.0, 2], [3, 4], [5, 6]])),
        {"column_0": [1, 3, 5], "column_1": [2, 4, 6]},
        None,
    ),
    "npz": (
        npz(x=np.arange(3), t=np.array(["2021-01", "2021-02", "2021-03"], "M8[M]"), ok=np.array([True, False, True])),
        {"x": [0, 1, 2]},
        "t",
    ),
    "json list": ('[1, null, 2.5, "inf", "-inf"]', {"column_0": [1, NAN, 2.5, math.inf, -math.inf]}, None),
    "json lists": ('{"a": [1, 2], "b": [null, 4.5]}', {"a": [1, 2], "b": [NAN, 4.5]}, None),
    "json rows": ('[{"t": "2021-01-01", "v": 1}, {"t": "2021-01-02", "v": null}]', {"v": [1, NAN]}, "t"),
    "json with a mark": (b"\xef\xbb\xbf[1, 2]", {"column_0": [1, 2]}, None),
    "gzip": (gzip.compress(b"a,b\n1,2\n"), {"a": [1], "b": [2]}, None),
    "gzip of parquet": (gzip.compress(parquet(a=pa.array([1, 2]))), {"a": [1, 2]}, None),
    "gzip members one after the other": (gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"), {"a": [1, 3], "b": [2, 4]}, None),
}  # fmt: skip


@pytest.mark.parametrize(("data", "columns", "time"), TYPED.values(), ids=TYPED)
def test_typed_files_are_read(data, columns, time):
    outcome = given(data)
    assert outcome.ok["time_column"] == time
    assert list(outcome.columns) == list(columns)
    for name, values in columns.items():
        assert outcome.columns[name] == pytest.approx(values, nan_ok=True, rel=0, abs=0)
    if time:
        assert outcome.times[0] == "2021-01-01T00:00:00.000000"


def test_numbers_of_typed_files_can_be_times_and_missing():
    data = parquet(t=pa.array([19580329, 19580405]), u=pa.array([1.0, 2.0]), v=pa.array([-999, 3]))
    assert given(data, time_column="t", time_format="%Y%m%d").times[0] == "1958-03-29T00:00:00.000000"
    outcome = given(data, time_column="u", time_format="unix_s", missing="-999")
    assert outcome.times[0] == "1970-01-01T00:00:01.000000"
    assert outcome.columns["v"] == pytest.approx([NAN, 3], nan_ok=True)


UNFIT = {
    "parquet lists": (parquet(a=pa.array([[1], [2]])), "single numbers"),
    "parquet without rows": (parquet(a=pa.array([], pa.int64())), "no rows"),
    "parquet text alone": (parquet(a=pa.array(["x"])), "No column holds numbers"),
    "parquet, a missing time": (parquet(t=pa.array([MONTH[0], None]), v=pa.array([1, 2])), "missing"),
    "parquet names twice": (
        (lambda out: (pq.write_table(pa.table([[1], [2]], names=["a", "a"]), out), out.getvalue())[1])(io.BytesIO()),
        "named `a`",
    ),
    "parquet cut short": (parquet(a=pa.array(range(1000)))[:-100], "cut short"),
    "npy of objects": (npy(np.array([{}], object), allow_pickle=True), "pickle"),
    "npy complex": (npy(np.array([1j])), "complex"),
    "npy structured": (npy(np.zeros(3, [("a", "f8")])), "single real numbers"),
    "npy scalar": (npy(np.array(1.0)), "0 dimensions"),
    "npy cube": (npy(np.zeros((2, 2, 2))), "3 dimensions"),
    "npy empty": (npy(np.zeros(0)), "no rows"),
    "npy durations": (npy(np.zeros(3, "m8[s]")), "single real numbers"),
    "npy cut short": (npy(np.zeros(100))[:-8], "800 bytes"),
    "npy with more than it says": (npy(np.zeros(100)) + b"x", "claims"),
    "npy claiming the world": (npy(np.zeros(1)).replace(b"(1,)", b"(99999999999,)"), "claims"),
    "npy, years too far": (npy(np.array([10**6], "M8[Y]")), "9999"),
    "npz of unequal lengths": (npz(a=np.zeros(2), b=np.zeros(3)), "different lengths"),
    "npz of a matrix": (npz(a=np.zeros((2, 2))), "two dimensions"),
    "npz of objects": (zipped(**{"a.npy": npy(np.array([{}], object), allow_pickle=True)}), "pickle"),
    "npz with a way out": (zipped(**{"../a.npy": npy(np.zeros(2))}), "folders"),
    "npz with a root": (zipped(**{"/a.npy": npy(np.zeros(2))}), "folders"),
    "npz with a folder": (zipped(**{"b/a.npy": npy(np.zeros(2))}), "folders"),
    "npz with Windows' way out": (zipped(**{"..\\a.npy": npy(np.zeros(2))}), "folders"),
    "zip of csv": (zipped(**{"a.csv": b"1,2"}), "`a.csv`"),
    "a zipped csv": (zipped(**{"data.csv": b"a,b\n1,2\n"}), "unzip it and send `data.csv`"),
    "excel": (zipped(**{"[Content_Types].xml": b"<x/>"}), "save the sheet as CSV"),
    "npz cut short": (npz(a=np.arange(1000))[:-40], "cut short"),
    "pickle": (pickle.dumps([1, 2, 3]), "never opened"),
    "bzip2": (b"BZh91AY", "bzip2"),
    "pdf": (b"%PDF-1.7", "PDF"),
    "json NaN": ('{"a": "NaN",\n"b": [NaN]}', "`NaN` is no JSON"),
    "json text among numbers": ('{"a": [1, "x"]}', "`x`"),
    "json truth among numbers": ("[1, true]", "`True`"),
    "json uneven lists": ('{"a": [1], "b": [1, 2]}', "different lengths"),
    "json uneven rows": ('[{"a": 1}, {"b": 1}]', "unlike the first"),
    "json names twice": ('{"a": [1], "a": [2]}', "twice"),
    "json matrix": ("[[1, 2], [3, 4]]", "another shape"),
    "json lists in a column": ('{"a": [1, [2]]}', "not a number"),
    "json nested without end": ("[" * 100_000, "nested"),
    "json too large a number": ("[1e999]", "beyond the range"),
    "json too long a number": ("[" + "9" * 5000 + "]", "cannot be read"),
    "json broken": ("[1,\n2", "line 2"),
    "json lines": ('{"a": 1}\n{"a": 2}', "JSON Lines"),
    "json empty": ("[]", "no rows"),
    "json half a character": ('{"\\ud800": [1]}', "half a character"),
    "gzip cut short": (gzip.compress(b"a,b\n1,2\n" * 100)[:-10], "cut short"),
    "gzip broken": (gzip.compress(b"a,b\n1,2\n" * 100)[:-10] + b"xxxxxxxxxx", "broken"),
    "gzip thrice": (gzip.compress(gzip.compress(gzip.compress(b"1"))), "Compress it once"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
}


@pytest.mark.parametrize(("data", "words"), UNFIT.values(), ids=UNFIT)
def test_other_files_are_refused_in_words(data, words):
    assert words in given(data).error["detail"]


PARQUET, CSV = parquet(a=pa.array([1])), b"a,b\n1,2\n"
DECLARED = {
    "text that is parquet": (PARQUET, {"media_type": "text/csv"}, ("text/csv", "PAR1")),
    "a name that is parquet": (PARQUET, {"file_name": "x.csv"}, ("x.csv", "PAR1")),
    "parquet that is text": (CSV, {"media_type": "application/vnd.apache.parquet"}, ("Parquet", "PAR1")),
    "npz that is npy": (npy(np.zeros(1)), {"file_name": "a.npz"}, ("NPZ", "NPY")),
    "json that is text": (CSV, {"media_type": "application/json"}, ("JSON", "line 1")),
    "gzip that is none": (CSV, {"content_encoding": "gzip"}, ("Content-Encoding", "gzip")),
    "a gzip name that is none": (CSV, {"file_name": "a.csv.gz"}, ("a.csv.gz", "gzip")),
    "an unknown encoding": (CSV, {"content_encoding": "br"}, ("`br`",)),
    "an unknown media type": (CSV, {"media_type": "image/png"}, ("image/png",)),
    "an option of text": (PARQUET, {"delimiter": ","}, ("`delimiter`", "parquet")),
}


@pytest.mark.parametrize(("data", "said", "words"), DECLARED.values(), ids=DECLARED)
def test_a_declaration_the_bytes_contradict_is_refused_with_both_named(data, said, words):
    detail = given(data, **said).error["detail"]
    assert all(word in detail for word in words), detail


FORMATS = {
    "csv by type": (CSV, {"media_type": "text/csv; charset=utf-8"}, "csv"),
    "tsv by type": (b"a\tb\n1\t2", {"media_type": "text/tab-separated-values"}, "tsv"),
    "tsv by what is in it": (b"a\tb\n1\t2", {"file_name": "a.csv"}, "tsv"),
    "csv by what is in it": (CSV, {"media_type": "application/octet-stream", "file_name": "x"}, "csv"),
    "csv as Windows says": (CSV, {"media_type": "application/vnd.ms-excel", "file_name": "x.csv"}, "csv"),
    "type before name": (PARQUET, {"media_type": "application/vnd.apache.parquet", "file_name": "x.csv"}, "parquet"),
    "name below gzip": (gzip.compress(CSV), {"file_name": "x.csv.gz", "media_type": "application/gzip"}, "csv"),
    "gzip encoding of gzip": (gzip.compress(gzip.compress(CSV)), {"file_name": "x.csv.gz", "content_encoding": "gzip"}, "csv"),
    "json by what is in it": (b" [1]", {"media_type": "text/plain"}, "json"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said", "format"), FORMATS.values(), ids=FORMATS)
def test_the_format_is_what_is_declared_else_named_else_seen(data, said, format):
    assert given(data, **said).ok["format"] == format


def test_json_errors_name_the_line():
    error = given('{"a": "NaN",\n"b": [1,\nNaN]}').error
    assert error["row"] == 3
    assert given(json.dumps([1, "x"])).error["row"] == 2


def test_a_time_beyond_what_a_calendar_holds_is_refused_in_words():
    far = pa.array([0, 570_000_000_000_000_000], pa.int64()).cast(pa.timestamp("ms"))
    error = given(parquet(t=far, x=pa.array([1.0, 2.0])), file_name="far.parquet").error
    assert (error["row"], error["column"], error["option"]) == (2, "t", "time_format")
    assert "570000000000000000 ms since 1970" in error["detail"]
