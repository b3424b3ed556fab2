"""A result says the same in each of its four files, with times where the data has them."""

import csv
import hashlib
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from workers.contract import Artifact
from workers.matrix_profile import files, sheets
from workers.matrix_profile.profile import Profile

SERIES = np.sin(np.arange(120) / 4) + np.random.default_rng(0).standard_normal(120) / 10
SERIES[50] = np.nan
START = datetime(1958, 3, 29, tzinfo=UTC)
DAYS = np.arange(120) * 86_400_000_000 + int(START.timestamp()) * 1_000_000


def at(row: int) -> str:
    return (START + timedelta(days=row)).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse(constant: str):
    raise ValueError(f"{constant} is no JSON")


def read_json(done):
    return json.loads((done.folder / "result.json").read_text(), parse_constant=refuse)


@pytest.fixture(params=[1, 3], ids=["k=1", "k=3"])
def done(request, job):
    return job(SERIES, 16, times=DAYS, k=request.param)


def columns(name: str, values: np.ndarray) -> dict[str, list]:
    if values.ndim == 1:
        return {name: values.tolist()}
    return {f"{name}_{number + 1}": values[:, number].tolist() for number in range(values.shape[1])}


def expected_table(done) -> dict[str, list]:
    distances = np.where(np.isfinite(done.arrays["distances"]), done.arrays["distances"], None)
    table = {"index": list(range(105)), "time": [at(row) for row in range(105)]}
    table |= columns("distance", distances) | columns("neighbor", done.arrays["indices"])
    return table | {"left": done.arrays["left_indices"].tolist(), "right": done.arrays["right_indices"].tolist()}


def test_npz_has_whole_arrays(done):
    assert done.arrays["distances"].dtype == np.float64
    assert done.arrays["indices"].dtype == done.arrays["left_indices"].dtype == np.int64
    assert np.isinf(done.distances[35:51]).all()
    assert (done.indices[35:51] == -1).all()
    assert np.isfinite(done.distances[51:]).all()
    np.testing.assert_array_equal(done.arrays["time_us"], DAYS[:105])


def test_json_is_strict_and_the_same(done):
    said = read_json(done)
    for name in ("distances", "indices", "left_indices", "right_indices"):
        values = done.arrays[name]
        assert said[name] == (
            np.where(np.isfinite(values), values, None).tolist() if values.dtype == float else values.tolist()
        )
    assert said["at"] == [at(row) for row in range(105)]
    assert said["window"] == 16
    assert said["k"] == done.distances.shape[1]
    assert said["provenance"]["function"] == "stumpy.stump"


def test_csv_is_the_same(done):
    with (done.folder / "result.csv").open() as stored:
        rows = list(csv.DictReader(stored))
    expected = expected_table(done)
    assert list(rows[0]) == list(expected)
    for name, values in expected.items():
        cells = [row[name] for row in rows]
        assert cells == values if name == "time" else [float(c) if c else None for c in cells] == values


def test_parquet_is_the_same(done):
    table = pa.parquet.read_table(done.folder / "result.parquet")
    assert table.schema.field("time").type == pa.timestamp("us", tz="UTC")
    found, expected = table.to_pydict(), expected_table(done)
    assert [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in found.pop("time")] == expected.pop("time")
    assert found == expected


def test_artifacts_are_the_files(done):
    for told in done.answer["artifacts"]:
        artifact = Artifact.model_validate(told)
        content = (done.folder / artifact.name).read_bytes()
        assert artifact.bytes == len(content)
        assert artifact.sha256 == hashlib.sha256(content).hexdigest()
    assert {each["name"]: each["media_type"] for each in done.answer["artifacts"]} == {
        "result.json": "application/json",
        "result.csv": "text/csv",
        "result.parquet": "application/vnd.apache.parquet",
        "result.npz": "application/x-npz",
    }
    assert {each.name for each in done.folder.iterdir()} == {each["name"] for each in done.answer["artifacts"]}


def test_the_summary_names_the_nearest_and_the_loneliest_with_their_times(done):
    summary, nearest = done.answer["summary"], done.distances[:, 0]
    motif, discord = summary["motif"], summary["discord"]
    assert motif["distance"] == nearest.min() == nearest[motif["index"]]
    assert motif["neighbor"] == done.indices[motif["index"], 0]
    assert discord["distance"] == nearest[np.isfinite(nearest)].max() == nearest[discord["index"]]
    assert (motif["at"], motif["neighbor_at"]) == (at(motif["index"]), at(motif["neighbor"]))
    assert discord["at"] == at(discord["index"])
    assert summary["windows"] == 105
    assert summary["missing_windows"] == 16
    assert summary["verification"]["rows_checked"] >= 8
    assert summary["verification"]["max_abs_difference"] < 1e-9
    json.dumps(done.answer, allow_nan=False)


def test_provenance_says_where_a_result_comes_from(done):
    provenance = done.answer["provenance"]
    assert set(provenance["versions"]) == {"python", "numpy", "numba", "stumpy", "tidemill"}
    assert provenance["precision"] == "float64"
    assert provenance["implementation"] == "stumpy"
    assert provenance["threads"] == 1
    assert list(provenance["seconds"]) == ["loading", "computing", "verifying", "saving"]
    assert set(provenance) >= {"hardware", "seeds", "treatment", "pieces"}


def test_without_times_nothing_speaks_of_them(job):
    done = job(SERIES, 16)
    assert "at" not in read_json(done)
    assert "at" not in done.answer["summary"]["motif"]
    assert "time_us" not in done.arrays
    assert (done.folder / "result.csv").read_text().startswith("index,distance,neighbor,left,right\n")


def test_an_ab_join_takes_the_neighbours_times_from_the_other_series(job):
    done = job(SERIES[:60], 16, against=SERIES[52:], against_times=DAYS[52:] + 500_000)
    motif = done.answer["summary"]["motif"]
    assert "at" not in motif
    moment = START + timedelta(days=52 + motif["neighbor"], microseconds=500_000)
    assert motif["neighbor_at"] == moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert (done.arrays["left_indices"] == -1).all()


def test_a_source_is_a_stretch_of_a_stored_column_or_the_values(job, tmp_path):
    from tests.matrix_profile.conftest import Heard
    from workers.matrix_profile.run import run

    whole = job(SERIES[10:90], 16).answer["summary"]
    stretch = {"name": "co2", "path": str(tmp_path / "series.npy"), "start": 10, "stop": 90}
    np.save(stretch["path"], SERIES)
    values = [None if np.isnan(value) else value for value in SERIES[10:90]]
    for source in (stretch, {"name": "values", "values": values}):
        task = {"params": {"window": 16}, "sources": {"series": [source]}, "folder": str(tmp_path / "attempt")}
        assert run(task, Heard())["summary"] == whole


def test_a_million_rows_are_written_in_seconds(tmp_path):
    rows = 300_000  # a third of that here
    distances = np.random.default_rng(0).random((rows, 1))
    numbers = np.arange(rows)
    profile = Profile(distances, numbers[:, None], numbers, numbers)
    sheet = sheets.matrix_profile(profile, 50, numbers * 1_000_000)
    started = datetime.now(UTC)
    files.save(sheet, {"provenance": {}}, tmp_path)
    assert (datetime.now(UTC) - started).total_seconds() < 6
    said = json.loads((tmp_path / "result.json").read_text())
    assert said["distances"] == distances[:, 0].tolist()
    assert said["at"][-1] == "1970-01-04T11:19:59Z"
