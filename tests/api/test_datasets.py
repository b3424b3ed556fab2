"""Uploading, looking at and deleting datasets; and that what is refused leaves nothing behind."""

import gzip
import io
import json
import math
import socket
from urllib.parse import urlparse

import numpy as np
import pytest

from app.kit.ids import new_id
from tests.api.asking import CSV, profile, refused, table
from tests.house import eventually

LIMIT = 8 << 20
"""The house's TIDEMILL_MAX_UPLOAD_BYTES."""


@pytest.fixture
def fresh():
    """A table that no other test has sent."""
    return table(extra=new_id(""))


@pytest.fixture
def nothing_left(house):
    """After the test, HOME holds no more files of uploads than before."""

    def files():
        assert not list((house.home / "datasets").glob("*.partial"))
        return sorted([*(house.home / "datasets").iterdir(), *(house.home / "incoming").iterdir()])

    before = files()
    yield
    eventually(lambda: files() == before, 5)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# ---- what comes back ---------------------------------------------------------------------------------------------


def test_a_raw_body_becomes_a_dataset(api, house, fresh):
    answer = api.post("/datasets?name=raw.csv", content=fresh, headers={"content-type": CSV})
    assert answer.status_code == 201
    dataset = answer.json()
    assert answer.headers["location"] == f"/datasets/{dataset['id']}"
    assert (dataset["name"], dataset["format"], dataset["bytes"], dataset["rows"]) == ("raw.csv", "csv", len(fresh), 28)
    assert [(c["name"], c["type"]) for c in dataset["columns"]] == [
        ("date", "time"),
        ("celsius", "float64"),
        ("note", "text"),
    ]
    assert set(dataset["columns"][1]) == {"name", "type", "missing", "infinite", "min", "max"}
    assert api.get(answer.headers["location"]).json() == dataset
    assert api.get("/datasets?limit=1").json()["items"] == [dataset]
    content = api.get(f"/datasets/{dataset['id']}/content")
    assert content.content == fresh
    assert not list((house.home / "incoming").iterdir())


def test_the_same_bytes_are_the_same_dataset(api, fresh):
    first = api.post("/datasets?name=one.csv", content=fresh, headers={"content-type": CSV})
    form = api.post("/datasets", files={"file": ("other name.csv", fresh, CSV)})
    assert (first.status_code, form.status_code) == (201, 200)
    assert form.json() == first.json()
    assert form.headers["location"] == first.headers["location"]
    otherwise = api.post("/datasets?header=true", content=fresh, headers={"content-type": CSV})
    assert otherwise.status_code == 201
    assert otherwise.json()["id"] != first.json()["id"]
    again = api.post("/datasets", files={"file": ("x.csv", fresh, CSV)}, data={"header": "true"})
    assert (again.status_code, again.json()["id"]) == (200, otherwise.json()["id"])


def test_a_form_names_and_explains_the_file(api):
    german = f"tag;wert\n{new_id('')};1.000,5\nx;2,5\ny;k.A.\n".encode("latin-1")
    options = {"delimiter": ";", "decimal": ",", "thousands": ".", "missing": "k.A.", "encoding": "latin-1"}
    answer = api.post("/datasets", files={"file": ("de.csv", german, CSV)}, data={**options, "name": "Werte"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["name"] == "Werte"
    column = answer.json()["columns"][1]
    assert (column["name"], column["missing"], column["max"]) == ("wert", 1, 1000.5)
    query = api.post("/datasets", params=options, content=german, headers={"content-type": CSV})
    assert (query.status_code, query.json()["id"]) == (200, answer.json()["id"])


def test_the_charset_of_the_media_type_counts(api):
    text = f"zürich\n{np.random.default_rng().integers(10**9)}\n2\n3\n".encode("cp1252")
    answer = api.post("/datasets", content=text, headers={"content-type": "text/csv; charset=windows-1252"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["columns"][0]["name"] == "zürich"


def test_gzip_is_seen_by_header_and_by_name(api, fresh):
    packed, named = gzip.compress(fresh), gzip.compress(fresh, 1)
    by_header = api.post("/datasets", content=packed, headers={"content-type": CSV, "content-encoding": "gzip"})
    by_name = api.post("/datasets", files={"file": ("t.csv.gz", named)})
    for answer, sent in ((by_header, packed), (by_name, named)):
        assert answer.status_code == 201, answer.text
        assert answer.json()["rows"] == 28
        assert answer.json()["bytes"] == len(sent)
        content = api.get(f"{answer.headers['location']}/content", headers={"accept-encoding": "identity"})
        assert content.content == sent


@pytest.mark.parametrize(
    ("media_type", "content", "format"),
    [
        ("text/tab-separated-values", b"a\tb\n1\t2\n3\t4\n", "tsv"),
        ("application/x-npy", npy(np.arange(20.0)), "npy"),
        ("application/json", json.dumps({"v": [1, 2, None, 4]}).encode(), "json"),
    ],
)
def test_formats_are_told_by_media_type(api, media_type, content, format):
    answer = api.post("/datasets", content=content, headers={"content-type": media_type})
    assert answer.is_success, answer.text
    assert answer.json()["format"] == format


# ---- series ------------------------------------------------------------------------------------------------------


def test_series(api, dated):
    path = f"/datasets/{dated['id']}/series"
    whole = api.get(path).json()
    assert (whole["column"], whole["start"], whole["stop"], whole["downsampled"]) == ("celsius", 0, 28, False)
    assert whole["rows"] == list(range(28))
    assert whole["values"] == [round(math.sin(day) * 3, 3) for day in range(1, 29)]
    assert whole["at"][0] == "2024-01-01T00:00:00.000000Z"
    part = api.get(path, params={"column": "celsius", "start": 3, "stop": 6}).json()
    assert part["rows"] == [3, 4, 5]
    assert part["values"] == whole["values"][3:6]
    assert part["at"] == whole["at"][3:6]
    assert api.get(path, params={"column": "1"}).json() == whole
    drawn = api.get(path, params={"points": 6}).json()
    assert drawn["downsampled"]
    assert len(drawn["values"]) <= 6
    assert {min(whole["values"]), max(whole["values"])} <= set(drawn["values"])
    assert drawn["at"] == [whole["at"][row] for row in drawn["rows"]]
    assert api.get(path, params={"points": 28}).json() == whole


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"column": "none"}, "column"),
        ({"column": "0"}, "column"),
        ({"column": "note"}, "column"),
        ({"column": "3"}, "column"),
        ({"column": "9" * 5000}, "column"),
        ({"start": -1}, "start"),
        ({"start": 28}, "start"),
        ({"start": 4, "stop": 4}, "start"),
        ({"stop": 29}, "stop"),
        ({"points": 1}, "points"),
        ({"points": 100_001}, "points"),
        ({"points": "x"}, "points"),
    ],
)
def test_series_that_are_not_there(api, dated, query, pointer):
    answer = api.get(f"/datasets/{dated['id']}/series", params=query)
    refused(answer, 422, "invalid-input", f"/query/{pointer}")


def test_a_long_series_is_drawn_by_its_extremes_and_non_finite_is_null(api):
    values = np.random.default_rng(1).standard_normal(200_000)
    values[:1000], values[70_000], values[150_000], values[5000] = np.nan, 99.0, -99.0, np.inf
    dataset = api.post("/datasets", content=npy(values), headers={"content-type": "application/x-npy"}).json()
    assert (dataset["columns"][0]["missing"], dataset["columns"][0]["infinite"]) == (1000, 1)
    path = f"/datasets/{dataset['id']}/series"
    whole = api.get(path).json()
    assert len(whole["values"]) == 200_000
    assert [whole["values"][i] for i in (0, 5000, 70_000, 199_999)] == [None, None, 99.0, values[-1]]
    assert whole["at"] is None
    for points in (2, 1000):
        drawn = api.get(path, params={"points": points}).json()
        assert len(drawn["rows"]) <= points
        assert drawn["rows"] == sorted(set(drawn["rows"]))
        assert {70_000, 150_000} <= set(drawn["rows"])
        assert all(value == whole["values"][row] for row, value in zip(drawn["rows"], drawn["values"], strict=True))


def test_a_column_can_be_named_with_digits(api):
    content = b"first;0\n1;5\n2;6\n3;7\n4;9\n"
    answer = api.post("/datasets?header=true&delimiter=;", content=content, headers={"content-type": CSV})
    assert answer.is_success, answer.text
    dataset = answer.json()
    path = f"/datasets/{dataset['id']}/series"
    assert api.get(path, params={"column": "0"}).json()["values"] == [5, 6, 7, 9]  # the name counts before the number
    assert api.get(path, params={"column": "1"}).json()["column"] == "0"


# ---- deleting ----------------------------------------------------------------------------------------------------


def test_deleting_a_dataset_waits_for_the_jobs_that_need_it(api, house, both_busy, long_dataset):
    dataset = api.post(
        "/datasets", content=npy(np.sin(np.arange(100.0))), headers={"content-type": "application/x-npy"}
    )
    path = dataset.headers["location"]
    refused(api.delete(f"/datasets/{long_dataset}"), 409, "dataset-in-use")
    queued = api.submit(profile(series={"dataset": dataset.json()["id"]}))
    other = api.submit(profile(against={"dataset": dataset.json()["id"]}))
    refused(api.delete(path), 409, "dataset-in-use")
    api.post(queued["links"]["cancel"])
    refused(api.delete(path), 409, "dataset-in-use")
    api.post(other["links"]["cancel"])
    assert api.delete(path).status_code == 204
    for part in ("", "/content", "/series"):
        refused(api.get(path + part), 404, "not-found")
    refused(api.delete(path), 404, "not-found")
    assert not (house.home / path.lstrip("/")).exists()
    retried = api.post(f"/jobs/{queued['id']}/retry")
    refused(retried, 422, "invalid-input", "/params/series/dataset")


def test_an_empty_part_of_a_form_says_nothing(api, fresh):
    empty = dict.fromkeys(("name", "delimiter", "header", "missing", "skip_rows", "time_column", "text"), "")
    answer = api.post("/datasets", files={"file": ("blank.csv", fresh, CSV)}, data=empty)
    assert answer.status_code == 201, answer.text
    assert (answer.json()["name"], answer.json()["time_column"]) == ("blank.csv", "date")
    same = api.post("/datasets", content=fresh, headers={"content-type": CSV})
    assert same.json()["id"] == answer.json()["id"]
    timeless = api.post("/datasets?time_column=", content=fresh, headers={"content-type": CSV})
    assert timeless.json()["time_column"] is None


def test_a_dataset_says_how_it_was_read_and_what_to_look_at(api):
    content = b"My title\nt;v\n2024-01-02;1,5\n2024-01-01;2,5\n2024-01-03;%d,5\n" % np.random.default_rng().integers(
        1e9
    )
    answer = api.post("/datasets?skip_rows=1", content=content, headers={"content-type": CSV})
    assert answer.status_code == 201, answer.text
    dataset = answer.json()
    assert dataset["reading"] == {
        "delimiter": ";", "decimal": ",", "header": True, "encoding": "utf-8", "lines_skipped": 1, "time_format": "%Y-%m-%d",
    }  # fmt: skip
    assert (dataset["first_time"], dataset["last_time"]) == (
        "2024-01-02T00:00:00.000000Z",
        "2024-01-03T00:00:00.000000Z",
    )
    assert len(dataset["notes"]) == 1
    assert "first in line 4" in dataset["notes"][0]
    assert api.get(f"/datasets/{dataset['id']}").json() == dataset


def test_the_same_bytes_take_a_new_name_where_one_is_said(api, fresh):
    first = api.post("/datasets?name=old.csv", content=fresh, headers={"content-type": CSV}).json()
    renamed = api.post("/datasets?name=new.csv", content=fresh, headers={"content-type": CSV})
    assert (renamed.status_code, renamed.json()) == (200, {**first, "name": "new.csv"})
    unnamed = api.post("/datasets", files={"file": ("file.csv", fresh, CSV)})
    assert unnamed.json()["name"] == "new.csv"


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nothing_left")
def test_413_leaves_nothing(api):
    big = b"1\n" * (LIMIT // 2 + 1)
    refused(api.post("/datasets", content=big, headers={"content-type": CSV}), 413, "payload-too-large")
    refused(api.post("/datasets", files={"file": ("a.csv", big, CSV)}), 413, "payload-too-large")
    refused(api.post("/datasets", content=big * 3, headers={"content-type": CSV}), 413, "payload-too-large")
    pieces = (b"1\n" * 50_000 for _ in range(200))
    answer = api.post("/datasets", content=pieces, headers={"content-type": CSV})
    assert str(LIMIT) in refused(answer, 413, "payload-too-large")["detail"]
    assert api.get("/health/live").status_code == 200


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("form", [True, False])
def test_an_upload_cut_short_leaves_nothing(api, house, form):
    url = urlparse(house.url)
    media_type = "multipart/form-data; boundary=b" if form else CSV
    start = '--b\r\nContent-Disposition: form-data; name="file"; filename="cut.csv"\r\n\r\n' if form else ""
    with socket.create_connection((url.hostname, url.port)) as connection:
        head = f"POST /datasets HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: {media_type}\r\nContent-Length: 5000000\r\n\r\n"
        connection.sendall(f"{head}{start}a\n".encode() + b"1\n" * 1_000_000)
        eventually(lambda: list((house.home / "incoming").iterdir()), 5)
    eventually(lambda: not list((house.home / "incoming").iterdir()), 5)
    names = [dataset["name"] for dataset in api.get("/datasets").json()["items"]]
    assert "cut.csv" not in names


def part(head, body=b"1\n2\n3\n"):
    return b"--b\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + body + b"\r\n"


def sent(api, *parts, end=b"--b--\r\n"):
    headers = {"content-type": "multipart/form-data; boundary=b"}
    return api.post("/datasets", content=b"".join(parts) + end, headers=headers)


FILE = part(b'name="file"; filename="a.csv"')


@pytest.mark.usefixtures("nothing_left")
def test_wrong_forms(api):
    refused(sent(api, part(b'name="name"', b"x")), 422, "invalid-input", "/file")
    refused(sent(api), 422, "invalid-input", "/file")
    refused(sent(api, FILE, FILE), 422, "invalid-input", "/file")
    refused(sent(api, FILE, part(b'name="colour"', b"red")), 422, "invalid-input", "/colour")
    refused(sent(api, FILE, part(b"", b"red")), 422, "invalid-input")
    refused(sent(api, FILE, part(b'name="header"', b"perhaps")), 422, "invalid-input", "/header")
    refused(sent(api, FILE, part(b'name="missing"', b"\xff")), 422, "invalid-input", "/missing")
    refused(sent(api, FILE, part(b'name="missing"', b"x" * 5000)), 422, "invalid-input", "/missing")
    refused(sent(api, FILE, end=b""), 400, "bad-request")
    refused(sent(api, b"nonsense"), 400, "bad-request")
    for media_type in ("multipart/form-data", "multipart/form-data; boundary="):
        refused(api.post("/datasets", content=FILE, headers={"content-type": media_type}), 400, "bad-request")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("media_type", ["image/png", "application/pdf", "text/html", "application/xml", "nonsense"])
def test_what_is_no_table_is_unsupported(api, media_type):
    answer = api.post("/datasets", content=b"a\n1\n2\n", headers={"content-type": media_type})
    refused(answer, 415, "unsupported-media-type")
    assert "text/csv" in answer.headers["accept"]


@pytest.mark.usefixtures("nothing_left")
def test_what_curl_d_sends_is_unsupported_and_told_what_to_send(api):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    document = refused(api.post("/datasets", content=b"a,b1,2", headers=headers), 415, "unsupported-media-type")
    assert "-F file=@" in document["detail"]
    assert "--data-binary @" in document["detail"]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("query", "content", "option"),
    [
        ({}, b"", None),
        ({}, b"a,b\n1,2\n1,2,3\n", "delimiter"),
        ({"delimiter": "abc"}, b"a\n1\n2\n", "delimiter"),
        ({"encoding": "none"}, b"a\n1\n2\n", "encoding"),
        ({"time_column": "none"}, b"a\n1\n2\n", "time_column"),
        ({"text": "b"}, b"a\n1\n2\n", "text"),
        ({"skip_rows": "5"}, b"a\n1\n2\n", "skip_rows"),
        ({"decimal": "x"}, b"a\n1\n2\n", "decimal"),
        ({"thousands": "x"}, b"a\n1\n2\n", "thousands"),
        ({"time_column": "a", "time_format": "%Q"}, b"a,b\n1,1\n2,2\n", "time_format"),
    ],
)
def test_what_cannot_be_read_names_the_option(api, query, content, option):
    answer = api.post("/datasets", params=query, content=content, headers={"content-type": CSV})
    document = refused(answer, 422, "unreadable-file", f"/{option or 'file'}")
    assert document.get("option") == option


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "query",
    [{"header": "perhaps"}, {"delimiter": "\0"}, {"missing": "x" * 256}, {"encoding": "x" * 65}, {"name": "x" * 256}],
)
def test_options_have_a_form(api, query):
    answer = api.post("/datasets", params=query, content=b"a\n1\n2\n", headers={"content-type": CSV})
    refused(answer, 422, "invalid-input", *(f"/query/{name}" for name in query))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (b'filename="../../etc/passwd"', "passwd"),
        (b'filename="C:\\\\Users\\\\me\\\\t.csv"', "t.csv"),
        (b'filename="/"', "unnamed"),
        (b'filename=".."', ".."),
        (b'filename=""', "unnamed"),
        (b"filename*=UTF-8''W%C3%A4rme%E2%98%80.csv", "Wärme☀.csv"),
        ('filename="Wärme☀.csv"'.encode(), "Wärme☀.csv"),
        (b'filename="<script>.csv"', "<script>.csv"),
    ],
)
def test_file_names_are_labels(api, house, fresh, given, name):
    answer = sent(api, part(b'name="file"; ' + given, fresh))
    assert answer.status_code == 201, answer.text
    dataset = answer.json()
    assert dataset["name"] == name
    content = api.get(f"/datasets/{dataset['id']}/content")
    assert content.content == fresh
    assert content.headers["content-disposition"].startswith("attachment")
    assert content.headers["x-content-type-options"] == "nosniff"
    assert (house.home / "datasets" / dataset["id"] / "content").read_bytes() == fresh


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "given",
    [
        b'filename="a\0b.csv"',
        b'filename="' + b"x" * 10_000 + b'"',
        b'filename="' + b"x" * 300 + b'"',
        b'filename="a\x07.csv"',
    ],
)
def test_file_names_that_are_none(api, given):
    assert sent(api, part(b'name="file"; ' + given)).status_code in (400, 422)


# ---- times -------------------------------------------------------------------------------------------------------


def test_results_carry_the_times_of_their_rows(api, dated):
    import pyarrow.parquet

    job = api.submit(profile(series={"dataset": dated["id"]}, window=5), Prefer="wait=60")
    days = [f"2024-01-{day:02d}" for day in range(1, 25)]
    result = api.get(job["links"]["result"]).json()
    assert [at[:10] for at in result["at"]] == days
    assert all(at.endswith("Z") for at in result["at"])
    for found in ("motif", "discord"):
        assert job["result"][found]["at"][:10] == days[job["result"][found]["index"]]
    assert job["result"]["motif"]["neighbor_at"][:10] == days[job["result"]["motif"]["neighbor"]]
    head, *rows = api.get(job["links"]["result"], headers={"Accept": CSV}).text.split()
    place = head.split(",").index("time")
    assert [row.split(",")[place][:10] for row in rows] == days
    parquet = api.get(job["links"]["result"], headers={"Accept": "application/vnd.apache.parquet"})
    times = pyarrow.parquet.read_table(io.BytesIO(parquet.content)).column("time").to_pylist()
    assert [f"{time:%Y-%m-%d}" for time in times] == days


def test_results_of_a_stretch_carry_its_times(api, dated):
    job = api.submit(profile(series={"dataset": dated["id"], "start": 4, "stop": 24}, window=5), Prefer="wait=60")
    assert api.get(job["links"]["result"]).json()["at"][0][:10] == "2024-01-05"


def test_without_times_there_are_none(api, finished):
    assert "at" not in api.get(finished["links"]["result"]).json()
    assert "at" not in finished["result"]["motif"]
