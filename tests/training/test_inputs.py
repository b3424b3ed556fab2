"""References in a training configuration become files: series as they are stored, tables as their datasets show them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workers.contract import Source, TableSource, Task, TrainingTask
from workers.datasets.contract import Options, ReadRequest
from workers.datasets.reading import read
from workers.failures import InvalidInput
from workers.training.inputs import materialise

POINTER = "/config/data/init_args/table"


def task(folder: Path, sources=None, tables=None) -> Task:
    return Task(
        attempt="att_1", job="job_1", kind="training", params={}, sources=sources or {}, plan={}, folder=str(folder),
        training=TrainingTask(nodes=[], tables=tables or {}),
    )  # fmt: skip


def uploaded(folder: Path, content: bytes, name: str, **options) -> TableSource:
    """What the server tells of a file once it is a dataset."""
    folder.mkdir(exist_ok=True)
    path = folder / "content"
    path.write_bytes(content)
    told = read(
        ReadRequest(
            path=str(path), folder=str(folder), file_name=name, options=Options(**options), max_memory_bytes=1 << 30,
            max_unpacked_bytes=1 << 30, max_cpu_seconds=60, max_columns=100,
        )
    )  # fmt: skip
    assert told.ok, told.error
    numeric = {c.name: str(folder / f"columns/{i}.npy") for i, c in enumerate(told.ok.columns) if c.type == "float64"}
    return TableSource(
        name=name,
        format=told.ok.format,
        content=str(path),
        reading=told.ok.reading,
        columns=numeric,
        text_columns=[c.name for c in told.ok.columns if c.type != "float64"],
        time_column=told.ok.time_column,
        time_path=str(folder / "time.npy") if told.ok.time_column else None,
        rows=told.ok.rows,
    )


def made(tmp_path: Path, source: TableSource) -> tuple[pa.Table, list[str]]:
    said: list[str] = []
    paths = materialise(task(tmp_path / "attempt", tables={POINTER: source}), tmp_path / "attempt", said.append)
    assert set(paths) == {POINTER}
    assert not list((tmp_path / "attempt/inputs").glob("*.tmp"))
    return pq.read_table(paths[POINTER]), said


def test_a_whole_column_is_the_stored_one_and_a_stretch_a_file_of_its_own(tmp_path):
    column = tmp_path / "0.npy"
    np.save(column, np.arange(10.0))
    sources = {
        "/a": [Source(name="a", path=str(column))],
        "/b": [Source(name="b", path=str(column), start=0, stop=10)],
        "/c": [Source(name="c", path=str(column), start=2, stop=5)],
        "/d": [Source(name="d", path=str(column), start=2, stop=5)],
        "/e": [Source(name="e", values=[1.0, None, float("inf")])],
        "/f": [Source(name="f", path=str(column)), Source(name="g", values=[1.0])],
    }
    paths = materialise(task(tmp_path, sources), tmp_path)
    assert paths["/a"] == paths["/b"] == str(column)
    assert paths["/c"] == paths["/d"] != str(column)
    assert np.load(paths["/c"]).tolist() == [2, 3, 4]
    assert np.load(paths["/e"]) == pytest.approx([1, np.nan, np.inf], nan_ok=True)
    assert [Path(path).parent.name for path in paths["/f"]] == [tmp_path.name, "inputs"]
    assert Path(paths["/c"]).is_relative_to(tmp_path / "inputs")


def test_a_column_that_is_gone_is_told(tmp_path):
    with pytest.raises(InvalidInput, match="'old' cannot be read"):
        materialise(task(tmp_path, {"/a": [Source(name="old", path=str(tmp_path / "gone.npy"))]}), tmp_path)


CSV = 'Größe;Farbe;Wann;Preis\n1,5;rot ;01.02.2024;1.200,00\n;NA;02.02.2024;-1\n3;"blau; hell";03.02.2024;800,5\n'


def test_a_table_of_text_is_read_as_it_was_when_it_was_uploaded(tmp_path):
    source = uploaded(
        tmp_path / "ds", ("# Liste\n" + CSV).encode("latin-1"), "preise.csv", encoding="latin-1", decimal=",", thousands=".",
        missing="-1", time_column="Wann", time_format="%d.%m.%Y",
    )  # fmt: skip
    table, said = made(tmp_path, source)
    assert table["Größe"].to_pylist() == [1.5, None, 3.0]
    assert table["Preis"].to_pylist() == [1200.0, None, 800.5], "-1 was said to be missing"
    assert table["Farbe"].to_pylist() == ["rot", None, "blau; hell"]
    assert set(table.column_names) == {"Wann", "Größe", "Farbe", "Preis"}
    assert [at.isoformat() for at in table["Wann"].to_pylist()][1] == "2024-02-02T00:00:00+00:00"
    assert said == []


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_json_table_has_its_text(tmp_path, gzipped):
    import gzip

    rows = [{"x": 1, "kind": "a", "ok": True}, {"x": None, "kind": None, "ok": False}]
    content = json.dumps(rows).encode()
    source = uploaded(tmp_path / "ds", gzip.compress(content) if gzipped else content, "t.json")
    table, said = made(tmp_path, source)
    assert table.to_pylist() == [{"x": 1.0, "kind": "a", "ok": "true"}, {"x": None, "kind": None, "ok": "false"}]
    assert said == []


def test_a_parquet_table_has_the_numbers_its_dataset_shows(tmp_path):
    kept = pa.table(
        {
            "x": [1, -999, 3],
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "at": pa.array([0, 1, 2], pa.timestamp("s")),
        }
    )
    pq.write_table(kept, tmp_path / "t.parquet")
    source = uploaded(tmp_path / "ds", (tmp_path / "t.parquet").read_bytes(), "t.parquet", missing="-999")
    table, said = made(tmp_path, source)
    assert table["x"].to_pylist() == [1.0, None, 3.0]
    assert table["kind"].to_pylist() == ["a", "b", "a"]
    assert [at.second for at in table["at"].to_pylist()] == [0, 1, 2]
    assert said == []


def test_a_file_without_a_header_has_numbered_columns(tmp_path):
    source = uploaded(tmp_path / "ds", b"a,1\nb,2\nc,3\n", "t.csv", header="false")
    table, _ = made(tmp_path, source)
    assert table.to_pydict() == {"column_1": [1, 2, 3], "column_0": ["a", "b", "c"]}


def test_text_that_cannot_be_read_again_for_certain_is_left_out_and_that_is_said(tmp_path):
    source = uploaded(tmp_path / "ds", b"x,kind\n1,a\n2,b\n", "t.csv")
    Path(source.content).write_bytes(b"x,kind\n1,a\n")
    table, said = made(tmp_path, source)
    assert table.to_pydict() == {"x": [1, 2]}
    assert len(said) == 1
    assert "`kind`" in said[0]
    assert "'t.csv'" in said[0]


def test_a_long_table_is_whole(tmp_path):
    rows = 70_000
    content = "x,kind\n" + "".join(f"{i},k{i % 7}\n" for i in range(rows))
    table, _ = made(tmp_path, uploaded(tmp_path / "ds", content.encode(), "t.csv"))
    assert table["x"].to_numpy().tolist() == list(range(rows))
    assert table["kind"].to_pylist() == [f"k{i % 7}" for i in range(rows)]
