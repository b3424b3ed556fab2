"""What holds of every file: what we wrote is read back exactly, and no bytes do worse than a refusal."""

import gzip
import io
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.datasets import reading_door

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(st.floats(), min_size=width, max_size=width), min_size=1, max_size=8)
)
names = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1, max_size=8
    ),
    min_size=4,
    max_size=4,
    unique=True,
)


def written(value: float, decimal: str, thousands: str) -> str:
    """One cell, exactly."""
    if not math.isfinite(value):
        return "NA" if math.isnan(value) else repr(value)
    whole, point, rest = repr(value).partition(".")
    if whole.lstrip("-").isdigit():
        whole = f"{int(whole):,}".replace(",", thousands) if int(whole) else whole  # -0 has a sign to keep
    return whole + decimal * len(point) + rest


@quick
@given(
    table=tables,
    header=st.none() | names,
    delimiter=st.sampled_from(",;\t|"),
    signs=st.sampled_from([(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", "'"), (".", "\xa0")]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"]),
    packed=st.booleans(),
)
def test_a_table_written_in_any_dialect_is_read_back_exactly(
    table, header, delimiter, signs, newline, encoding, packed
):
    assume(any(not math.isnan(value) for row in table for value in row))
    decimal, thousands = signs
    rows = [[f'"{written(value, decimal, thousands)}"' for value in row] for row in table]
    width = len(rows[0])
    if header:
        rows.insert(0, [f'"{name}"' for name in header[:width]])
    data = newline.join(delimiter.join(row) for row in rows).encode(encoding)
    outcome = reading_door.given(
        gzip.compress(data) if packed else data,
        delimiter=delimiter,
        decimal=decimal,
        thousands=thousands,
        header="true" if header else "false",
        encoding=encoding.replace("-sig", ""),
        media_type="text/csv",
    )
    assert list(outcome.columns) == (header[:width] if header else [f"column_{i}" for i in range(width)])
    assert repr(list(outcome.columns.values())) == repr([list(column) for column in zip(*table, strict=True)])


csv_like = st.text(alphabet='0123456789.,;|\t \n\r"-+eEx#aNA/:TZ\ufeff', max_size=80).map(str.encode)
options = st.fixed_dictionaries(
    {},
    optional={
        "delimiter": st.sampled_from([",", ";", "tab", "|"]) | st.text(max_size=2),
        "decimal": st.sampled_from([".", ","]),
        "thousands": st.sampled_from([",", ".", " ", "none"]),
        "header": st.booleans() | st.text(max_size=2),
        "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-32", "cp932", "gb18030", "x"]),
        "missing": st.text(max_size=4),
        "time_column": st.sampled_from(["0", "1", "a", ""]),
        "time_format": st.sampled_from(["%Y%m%d", "%Y", "unix_s", "unix_ns", "%"]) | st.text(max_size=5),
        "media_type": st.sampled_from(["text/csv", "application/json", "text/tab-separated-values", "text/plain"]),
    },
)


def clean(data: bytes, **said: object) -> None:
    """Read it; whatever comes is a table or a sentence."""
    outcome = reading_door.given(data, max_unpacked_bytes=1 << 20, **said)
    if "ok" in outcome.answer:
        assert outcome.ok["rows"] > 0
        assert all(len(values) == outcome.ok["rows"] for values in outcome.columns.values())
        assert len(outcome.columns) > 0
    else:
        assert outcome.error["detail"].strip()


@quick
@given(data=st.binary(max_size=200) | csv_like, said=options)
def test_any_bytes_are_read_or_refused(data, said):
    clean(data, **said)


def parquet() -> bytes:
    out = io.BytesIO()
    moments = pa.array([0, 10**15, 2], pa.timestamp("us"))
    pq.write_table(pa.table({"a": [1, 2, None], "t": moments, "s": ["x", "y", None]}), out)
    return out.getvalue()


def numpy_file(save: object, *arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    save(out, *arrays)  # type: ignore[operator]
    return out.getvalue()


VALID = {
    "parquet": parquet(),
    "npy": numpy_file(np.save, np.arange(6.0).reshape(2, 3)),
    "npy of text": numpy_file(np.save, np.array(["a", "bc"])),
    "npz": numpy_file(np.savez_compressed, np.arange(6.0), np.array(["2021-01-01"] * 6, "M8[s]")),
    "gzip": gzip.compress(b"t,v\n2021-01-01,1.5\n2021-01-02,\n"),
    "json": b'[{"t": "2021-01-01", "v": 1.5}, {"t": "2021-01-02", "v": null}]',
    "csv": b'# x\n"t";v\n03.04.2021 05:06;1.234,5\n13.04.2021 05:06;-\n',
}


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid file with a few bytes changed, dropped or doubled, or its end cut."""
    data = bytearray(VALID[draw(st.sampled_from(sorted(VALID)))])
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["change", "drop", "double"])):
            case "change":
                data[position] = draw(st.integers(0, 255))
            case "drop" if len(data) > 1:
                del data[position]
            case _:
                data[position:position] = data[position : position + 8]
    return bytes(data[: draw(st.integers(1, len(data)))] if draw(st.integers(0, 4)) == 0 else data)


@settings(quick, max_examples=150)
@given(data=mutated(), said=options)
def test_a_damaged_file_is_read_or_refused(data, said):
    clean(data)
    clean(data, **said)
