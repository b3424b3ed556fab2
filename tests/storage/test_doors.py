"""The workers' doors for files, as a worker calls them, and as one that may not."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.chaos.acts import computing
from tests.house import eventually, long_series
from tests.storage.conftest import Far
from workers.contract import VERSION


@pytest.fixture
def door(far: Far) -> Iterator[httpx.Client]:
    headers = {"Tidemill-Protocol": VERSION}
    with httpx.Client(base_url=f"{far.house.url}/internal", headers=headers, trust_env=False) as client:
        yield client


@pytest.fixture
def running(far: Far) -> Iterator[tuple[str, str, Path]]:
    """An attempt that runs: its id, its claim, and its folder on the server."""
    import sqlite3

    with far.house.api() as api:
        dataset = api.post("/datasets", files={"file": ("walk.npy", long_series(150_000))}).json()["id"]
        body = {"kind": "matrix_profile", "params": {"series": {"dataset": dataset}, "window": 100}}
        job = api.submit({**body, "execution": {"backend": "cpu"}})["id"]
        eventually(lambda: computing(api, job), 60)
        with sqlite3.connect(f"file:{far.house.home / 'tidemill.db'}?mode=ro", uri=True) as db:
            attempt, claim = db.execute("SELECT id, claim FROM attempt WHERE job_id = ?", [job]).fetchone()
        yield attempt, claim, far.house.home / "jobs" / job / "1"
        api.post(f"/jobs/{job}/cancel")
        api.until(job, "cancelled")


def told(content: bytes) -> dict[str, str]:
    return {"Tidemill-SHA256": hashlib.sha256(content).hexdigest(), "Tidemill-Modified": "1700000000000000000"}


def test_only_what_workers_need_can_be_read(door, far):
    (far.house.home / "secret.txt").write_text("no")
    for name in (
        "tidemill.db",
        "secret.txt",
        "lock",
        "incoming/x",
        "datasets",
        "jobs/..%2Ftidemill.db",
        "jobs/%2e%2e/lock",
    ):
        assert door.get(f"/files/{name}").status_code in (404, 422), name
    (far.house.home / "jobs" / "link").symlink_to(far.house.home / "tidemill.db")
    assert door.get("/facts/tidemill.db").json() == []
    # What a job's own code may have left as a link is not followed out of the folder that was asked for.
    assert not [each for each in door.get("/facts/jobs").json() if each["name"].endswith("link")]
    (far.house.home / "jobs" / "link").unlink()


def test_a_file_comes_with_its_hash(door, far):
    with far.house.api() as api:
        dataset = api.post("/datasets", files={"file": ("a.csv", "v\n1\n2\n4\n")}).json()["id"]
    (facts,) = door.get(f"/facts/datasets/{dataset}/columns/0.npy").json()
    answer = door.get(f"/files/{facts['name']}")
    assert answer.headers["Tidemill-SHA256"] == facts["sha256"] == hashlib.sha256(answer.content).hexdigest()
    assert facts["bytes"] == len(answer.content)


def test_a_file_is_kept_whole_or_not_at_all(door, running):
    attempt, claim, folder = running
    send = {"params": {"claim": claim}, "content": b"whole"}
    assert door.put(f"/attempts/{attempt}/files/a/b.bin", headers=told(b"whole"), **send).status_code == 204
    assert (folder / "a" / "b.bin").read_bytes() == b"whole"
    assert (folder / "a" / "b.bin").stat().st_mtime_ns == 1_700_000_000_000_000_000
    assert door.put(f"/attempts/{attempt}/files/a/b.bin", headers=told(b"other"), **send).status_code == 425
    assert (folder / "a" / "b.bin").read_bytes() == b"whole"
    assert [each.name for each in (folder / "a").iterdir()] == ["b.bin"]


@pytest.mark.parametrize("name", ["..%2F..%2Fx", "%2e%2e/x", "a%00b", "a//b", "x" * 300])
def test_a_name_stays_below_the_attempt(door, running, name):
    attempt, claim, _ = running
    answer = door.put(f"/attempts/{attempt}/files/{name}", params={"claim": claim}, headers=told(b"x"), content=b"x")
    assert answer.status_code in (404, 422)


def test_a_link_that_a_job_left_leads_nowhere(door, running, far):
    attempt, claim, folder = running
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "out").symlink_to(far.house.home)
    answer = door.put(f"/attempts/{attempt}/files/out/x", params={"claim": claim}, headers=told(b"x"), content=b"x")
    assert answer.status_code == 422
    assert not (far.house.home / "x").exists()
    assert door.delete(f"/attempts/{attempt}/files/out/tidemill.db", params={"claim": claim}).status_code == 422
    assert door.delete(f"/attempts/{attempt}/files/out", params={"claim": claim}).status_code == 204
    assert (far.house.home / "tidemill.db").is_file()


def test_nobody_writes_without_the_claim(door, running):
    attempt, _, folder = running
    for params in ({"claim": "another"}, {}):
        answer = door.put(f"/attempts/{attempt}/files/x", params=params, headers=told(b"x"), content=b"x")
        assert answer.status_code in (409, 422)
    assert door.post(f"/attempts/{attempt}/files/log.txt", params={"claim": "no", "offset": 0}).status_code == 409
    assert door.delete(f"/attempts/{attempt}/files/log.txt", params={"claim": "no"}).status_code == 409
    assert not (folder / "x").exists()


def test_a_log_that_is_sent_twice_counts_once_and_several_write_to_one(door, running):
    attempt, claim, folder = running

    def extend(node: int, offset: int, part: bytes) -> int:
        params = {"claim": claim, "offset": offset, "node": node}
        return door.post(f"/attempts/{attempt}/files/rank-7.log", params=params, content=part).json()

    assert extend(0, 0, b"one ") == 4
    assert extend(1, 0, b"TWO ") == 4
    assert extend(0, 0, b"one three ") == 10  # the first part again, and more
    assert extend(0, 0, b"one ") == 10
    assert extend(1, 99, b"too far") == 4  # a gap is not filled: the answer says from where
    assert (folder / "rank-7.log").read_bytes() == b"one TWO three "


def test_many_nodes_at_once_lose_nothing(door, running):
    attempt, claim, folder = running

    def write(node: int) -> None:
        for i in range(20):
            params = {"claim": claim, "offset": i * 8, "node": node}
            line = f"{node}:{i:05d}\n".encode()
            door.post(f"/attempts/{attempt}/files/rank-8.log", params=params, content=line)

    threads = [threading.Thread(target=write, args=(node,)) for node in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (folder / "rank-8.log").read_text().split()
    assert sorted(lines) == sorted(f"{node}:{i:05d}" for node in range(4) for i in range(20))
    assert all(
        [each for each in lines if each[0] == str(node)] == [f"{node}:{i:05d}" for i in range(20)] for node in range(4)
    )


def test_a_worker_of_another_version_is_told_both(far):
    for path in ("/internal/storage", "/internal/facts/jobs"):
        for headers in ({"Tidemill-Protocol": "999"}, {}):
            answer = httpx.get(f"{far.house.url}{path}", headers=headers, trust_env=False)
            assert answer.status_code == 409
            assert answer.json()["type"] == "/problems/version-mismatch"
            assert VERSION in answer.json()["detail"]
            assert headers.get("Tidemill-Protocol", "does not say") in answer.json()["detail"]
