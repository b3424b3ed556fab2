"""The result in four formats, the files, the plot."""

import hashlib
import io

import httpx
import numpy as np
import pytest

from tests.api.asking import profile, refused, wave
from tests.house import eventually
from workers.operations import OPERATIONS

PARQUET, NPZ, CSV = "application/vnd.apache.parquet", "application/x-npz", "text/csv"


@pytest.fixture(scope="module", params=[1, 3])
def gappy(api, request):
    """A succeeded job of a series with gaps, for one neighbour and for three."""
    job = api.submit(profile([*wave(40), None, *wave(40)], k=request.param), Prefer="wait=60")
    assert job["state"] == "succeeded"
    return job


def fetched(api, job, accept=None):
    answer = api.get(job["links"]["result"], headers={"Accept": accept} if accept else {})
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == accept or accept is None
    assert "Accept" in answer.headers["vary"]
    return answer


def test_json_has_what_the_contract_says(api, gappy):
    answer = fetched(api, gappy)
    assert answer.headers["content-type"] == "application/json"
    result = answer.json()
    length = 81 - 8 + 1
    assert all(len(result[n]) == length for n in ("distances", "indices", "left_indices", "right_indices"))
    assert {"versions", "hardware", "precision", "seeds", "implementation", "seconds"} <= set(result["provenance"])
    assert result["summary"] == gappy["result"]
    motif, discord = gappy["result"]["motif"], gappy["result"]["discord"]
    distances, indices = np.array(result["distances"], float), np.array(result["indices"])
    first = distances.reshape(length, -1)[:, 0]
    assert motif["distance"] == np.nanmin(first) == first[motif["index"]]
    assert motif["neighbor"] == indices.reshape(length, -1)[motif["index"], 0]
    assert discord["distance"] == np.nanmax(first) == first[discord["index"]]
    assert gappy["result"]["verification"]["rows_checked"] > 0
    assert gappy["result"]["verification"]["max_abs_difference"] < 1e-6


def test_the_formats_agree(api, gappy):
    import pyarrow.csv
    import pyarrow.parquet

    result = fetched(api, gappy).json()
    distances = np.array(result["distances"], float).reshape(74, -1)
    indices = np.array(result["indices"]).reshape(74, -1)
    with np.load(io.BytesIO(fetched(api, gappy, NPZ).content), allow_pickle=False) as npz:
        stored = npz["distances"].reshape(74, -1)
        assert np.array_equal(np.where(np.isfinite(stored), stored, np.nan), distances, equal_nan=True)
        assert np.array_equal(npz["indices"].reshape(74, -1), indices)
        assert np.array_equal(npz["left_indices"], result["left_indices"])
        assert np.array_equal(npz["right_indices"], result["right_indices"])
    parquet = pyarrow.parquet.read_table(io.BytesIO(fetched(api, gappy, PARQUET).content))
    text = pyarrow.csv.read_csv(io.BytesIO(fetched(api, gappy, CSV).content))
    assert parquet.column_names == text.column_names
    assert parquet.num_rows == text.num_rows == 74
    for table in (parquet, text):
        assert table.column("index").to_pylist() == list(range(74))
        columns = [name for name in table.column_names if name.startswith("distance")]
        assert len(columns) == distances.shape[1]
        for j, name in enumerate(columns):
            told = np.array([np.nan if v is None else v for v in table.column(name).to_pylist()], float)
            assert np.array_equal(np.where(np.isfinite(told), told, np.nan), distances[:, j], equal_nan=True)
        neighbours = [name for name in table.column_names if name.startswith("neighbor")]
        for j, name in enumerate(neighbours):
            assert np.array_equal(table.column(name).to_numpy(), indices[:, j])


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/csv;q=0.5, application/x-npz", NPZ),
        ("text/*", CSV),
        ("video/mp4, text/csv;q=0.1", CSV),
    ],
)
def test_accept_is_weighed(api, finished, accept, media_type):
    answer = api.get(finished["links"]["result"], headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == media_type


def test_there_is_no_result_before_the_end(api, both_busy):
    running = both_busy[0]
    for part in ("result", "plot"):
        document = refused(api.get(running["links"][part]), 409, "not-ready")
        assert "running" in document["detail"]
    queued = api.submit(profile())
    refused(api.get(queued["links"]["result"]), 409, "not-ready")
    api.post(queued["links"]["cancel"])
    refused(api.get(queued["links"]["result"]), 409, "not-ready")
    assert api.get(queued["links"]["artifacts"]).json() == {"items": [], "next": None}


# ---- artifacts ---------------------------------------------------------------------------------------------------


def test_artifacts_are_what_they_say(api, finished):
    files = api.get(finished["links"]["artifacts"]).json()["items"]
    assert {"result.json", "result.csv", "result.parquet", "result.npz"} <= {file["name"] for file in files}
    for file in files:
        answer = api.get(f"/jobs/{finished['id']}/artifacts/{file['name']}")
        assert answer.status_code == 200
        assert len(answer.content) == file["bytes"] == int(answer.headers["content-length"])
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
        assert answer.headers["content-type"].partition(";")[0] == file["media_type"]


def test_ranges(api, finished):
    path = f"/jobs/{finished['id']}/artifacts/result.json"
    whole = api.get(path)
    assert whole.headers["accept-ranges"] == "bytes"

    def ranged(text, **headers):
        return api.get(path, headers={"Range": text, **headers})

    for text, part in (("bytes=0-9", slice(0, 10)), ("bytes=10-", slice(10, None)), ("bytes=-7", slice(-7, None))):
        answer = ranged(text)
        assert (answer.status_code, answer.content) == (206, whole.content[part])
        assert answer.headers["content-range"].endswith(f"/{len(whole.content)}")
    assert ranged("bytes=0-4,10-14").headers["content-type"].startswith("multipart/byteranges")
    outside = ranged("bytes=999999-")
    refused(outside, 416, "range-not-satisfiable")
    assert outside.headers["content-range"] == f"bytes */{len(whole.content)}"
    for nonsense in ("lines=1-2", "bytes=x", "bytes=", "bytes=9-3", "nonsense"):
        assert (ranged(nonsense).status_code, ranged(nonsense).content) == (200, whole.content)
    assert ranged("bytes=0-9", **{"If-Range": whole.headers["etag"]}).status_code == 206
    assert ranged("bytes=0-9", **{"If-Range": '"other"'}).content == whole.content


def test_the_content_of_a_dataset_has_ranges_too(api, dated):
    path = f"/datasets/{dated['id']}/content"
    assert api.get(path, headers={"Range": "bytes=0-3"}).content == b"date"
    refused(api.get(path, headers={"Range": "bytes=999999-"}), 416, "range-not-satisfiable")


ELSEWHERE = (
    *(
        "..%2f..%2f..%2ftidemill.db",
        "%2e%2e%2f1%2fresult.json",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "%2e%2e",
        "%5c..%5cx",
    ),
    *("%00", "result.json%00", "result.json/", "1/result.json", "none.bin", "x" * 3000, "log.txt", ""),
)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_name_leads_elsewhere(api, finished, name):
    url = httpx.URL(str(api.base_url)).copy_with(raw_path=f"/jobs/{finished['id']}/artifacts/{name}".encode())
    refused(api.get(url), 404, "not-found")


# ---- plots -------------------------------------------------------------------------------------------------------


def size_of(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def test_plots_have_the_size_that_was_asked_for(api, finished):
    plain = api.get(finished["links"]["plot"])
    assert plain.headers["content-type"] == "image/png"
    assert size_of(plain.content) == (1200, 700)
    small = api.get(finished["links"]["plot"], params={"width": 641, "height": 333}, headers={"Accept": "image/png"})
    assert size_of(small.content) == (641, 333)
    drawing = api.get(finished["links"]["plot"], headers={"Accept": "image/svg+xml"})
    assert drawing.headers["content-type"].startswith("image/svg+xml")
    assert "<svg" in drawing.text
    assert "<script" not in drawing.text
    refused(api.get(finished["links"]["plot"], headers={"Accept": "text/html"}), 406, "not-acceptable")


@pytest.mark.parametrize("kind", OPERATIONS)
def test_every_kind_has_a_plot(api, kind):
    operation = OPERATIONS[kind]
    one, gappy = {"values": wave(80)}, {"values": [*wave(40), None, *wave(39)]}
    several = kind in ("multidimensional_profile", "consensus_motif")
    given = {"series": [one, gappy]} if several else dict.fromkeys(operation.series, one)
    windows = {"min_window": 8, "max_window": 12} if kind == "pan_profile" else {"window": 8}
    job = api.submit({"kind": kind, "params": given | windows}, Prefer="wait=60")
    assert job["state"] == "succeeded", job
    assert size_of(api.get(job["links"]["plot"]).content) == (1200, 700)
    drawing = api.get(job["links"]["plot"], headers={"Accept": "image/svg+xml"})
    assert drawing.status_code == 200, drawing.text
    assert "<svg" in drawing.text


@pytest.mark.parametrize("size", [{"width": 0}, {"width": 10_000}, {"height": "x"}, {"height": 1}])
def test_plots_have_bounds(api, finished, size):
    refused(api.get(finished["links"]["plot"], params=size), 422, "invalid-input", *(f"/query/{n}" for n in size))


def test_only_the_newest_plots_are_kept(api, house):
    job = api.submit(profile(), Prefer="wait=60")
    for width in range(300, 310):
        assert api.get(job["links"]["plot"], params={"width": width, "height": 200}).status_code == 200
    kept = {plot.name for plot in (house.home / "jobs" / job["id"] / "plots").iterdir()}
    assert kept == {f"{width}x200.png" for width in range(302, 310)}


def test_a_deleted_job_leaves_no_files(api, house):
    job = api.submit(profile(), Prefer="wait=60")
    api.get(job["links"]["plot"])
    assert api.delete(job["links"]["self"]).status_code == 204
    eventually(lambda: not (house.home / "jobs" / job["id"]).exists(), 5)
