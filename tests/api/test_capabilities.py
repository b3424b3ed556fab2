"""What the deployment has been proved to do, and proving it again."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from app.capabilities import table
from app.capabilities.readiness import what_was_missing
from app.engines.all import Engines
from app.kit.briefly import Briefly
from tests.api.asking import JSON, refused
from tests.desk import Desk
from tests.house import eventually
from workers.contract import PROTOCOL, VERSION
from workers.operations import OPERATIONS

SPOKEN = {PROTOCOL: VERSION}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
EVIDENCE = ("absent", "importable", "configured", "simulated", "executed")
BACKENDS = {"cpu", "dask", "ray", "cuda"}


@pytest.fixture
def found(api):
    """What there is once both workers have joined; the server is ready with the first."""

    def both():
        answer = api.get("/capabilities").json()
        return len(answer["engines"][0]["workers"]) == 2 and answer

    return eventually(both, 120)


@pytest.fixture
def probed(api, found):
    """A job that had all workers probe themselves, once it has ended."""
    answer = api.post("/capabilities/probes", json={"check": "cpu"}, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---- what there is ---------------------------------------------------------------------------------------------------


def test_every_worker_says_what_it_is_and_what_it_measured(found):
    assert TIME.fullmatch(found["probed_at"])
    (engine,) = found["engines"]
    assert (engine["name"], engine["mode"], engine["status"]) == ("dask", "embedded", "up")
    assert engine["address"].startswith("tcp://127.0.0.1:")
    assert len(engine["workers"]) == 2
    for worker in engine["workers"]:
        assert worker["host"]
        assert worker["threads"] == worker["resources"]["CPU"] == 1
        assert worker["resources"]["GPU"] <= len(worker["gpus"])
        assert worker["cpu"]["model"]
        assert worker["cpu"]["cores"] >= 1
        assert worker["memory_bytes"] > 0
        assert {"python", "numba", "stumpy", "dask"} <= set(worker["versions"])
        assert worker["speed"]["matrix_profile_cells_per_second"] > 0


def test_every_probe_says_what_it_proved_and_when(found):
    for worker in found["engines"][0]["workers"]:
        assert {"cpu", "dask", "cuda"} <= {probe["name"] for probe in worker["probes"]}
        for probe in worker["probes"]:
            assert set(probe) == {"name", "evidence", "detail", "seconds", "at", "expired"}
            assert probe["evidence"] in EVIDENCE
            assert probe["detail"]
            assert TIME.fullmatch(probe["at"])
            assert not probe["expired"]


def test_every_kind_has_every_backend_with_its_evidence_or_a_reason(found):
    assert [operation["kind"] for operation in found["operations"]] == list(OPERATIONS)
    for operation in found["operations"]:
        assert set(operation["backends"]) == BACKENDS
        for name, backend in operation["backends"].items():
            assert backend["evidence"] in EVIDENCE
            assert backend["available"] == (backend["evidence"] == "executed")
            assert backend["available"] == (backend["reason"] is None)
            tiles = [each for each in backend["functions"] if each.startswith("tiles.")]
            assert bool(tiles) == (name != "cuda" and operation["kind"] != "multidimensional_profile")
            stumpys = len(backend["functions"]) - len(tiles)
            assert stumpys == 2 or (operation["kind"], name) == ("multidimensional_profile", "cuda")
        assert operation["backends"]["cpu"]["available"]
        assert operation["backends"]["dask"]["available"]
        assert not operation["backends"]["ray"]["available"]
        assert "TIDEMILL_ENGINE" in operation["backends"]["ray"]["reason"]


def test_a_family_without_a_gpu_function_says_so(found):
    [operation] = [each for each in found["operations"] if each["kind"] == "multidimensional_profile"]
    cuda = operation["backends"]["cuda"]
    assert (cuda["available"], cuda["evidence"], cuda["functions"]) == (False, "absent", [])
    assert "STUMPY has no GPU function" in cuda["reason"]


def test_what_training_can_use_is_what_its_probes_executed(api):
    done = api.post("/capabilities/probes", json={"check": "training"}, headers={"Prefer": "wait=60"}).json()
    assert done["state"] == "succeeded", done["error"]
    training = api.get("/capabilities").json()["training"]
    strategies, executed = training["strategies"], {"available": True, "evidence": "executed", "reason": None}
    assert strategies["ddp"] == {"trainer": executed, "fabric": executed}
    assert training["precisions"]["32-true"]["cpu"] == executed
    assert training["accelerators"]["cpu"] == executed
    assert not strategies["ddp_find_unused_parameters_false"]["fabric"]["available"]  # Fabric does not know it
    for name in ("fsdp", "deepspeed", "xla"):
        for mode in ("trainer", "fabric"):
            proof = strategies[name][mode]
            assert (proof["available"], proof["evidence"]) == (False, "absent")
            assert proof["reason"]
    proofs = [
        proof for named in (strategies, training["precisions"]) for row in named.values() for proof in row.values()
    ]
    for proof in [*proofs, *training["accelerators"].values()]:
        assert proof["available"] == (proof["evidence"] == "executed")
        assert proof["available"] or proof["reason"]


def test_the_table_has_a_row_for_each_kind_and_a_reason_for_each_gap(found):
    lines = list(table.lines(found))
    rows = [line for line in lines if line.startswith("| `")]
    training = found["training"]
    named = [*OPERATIONS, *training["strategies"], *training["precisions"], *training["accelerators"]]
    assert [row.split("`")[1] for row in rows] == named
    assert all("executed" in row for row in rows[: len(OPERATIONS)])
    for number in {int(number) for row in rows for number in re.findall(r"\[(\d+)\]", row)}:
        assert sum(line.startswith(f"[{number}] ") for line in lines) == 1


# ---- proving it again ------------------------------------------------------------------------------------------------


def test_probes_run_again_on_every_worker_and_count_at_once(api, found, probed):
    assert (probed["kind"], probed["state"]) == ("probe", "succeeded")
    assert (probed["plan"]["implementation"], probed["plan"]["fallback"]) == ("probe", None)
    workers = {worker["id"]: worker for worker in api.get("/capabilities").json()["engines"][0]["workers"]}
    assert set(probed["result"]["workers"]) == set(workers)
    for name, answer in probed["result"]["workers"].items():
        assert answer["error"] is None
        [probe] = answer["probes"]
        assert (probe["name"], probe["evidence"]) == ("cpu", "executed")
        [kept] = [each for each in workers[name]["probes"] if each["name"] == "cpu"]
        assert kept["at"] > found["probed_at"]
        assert len(workers[name]["probes"]) > 1


def test_a_job_that_probes_is_a_job_like_any_other(api, probed):
    assert api.get("/jobs", params={"kind": "probe"}).json()["items"]
    assert [event["data"]["to"] for event in api.events(probed["id"]) if event["type"] == "state"][-1] == "succeeded"
    assert api.get(probed["links"]["explain"]).status_code == 200
    refused(api.post(probed["links"]["cancel"]), 409, "job-is-final")
    refused(api.post(f"/jobs/{probed['id']}/retry"), 409, "not-retryable")
    assert api.delete(probed["links"]["self"]).status_code == 204


def test_its_result_is_in_the_job_and_in_no_file(api, probed):
    for link in ("result", "plot"):
        document = refused(api.get(probed["links"][link]), 404, "not-found")
        assert "GET /capabilities" in document["detail"]
    assert api.get(probed["links"]["artifacts"]).json()["items"] == []


def test_it_is_accepted_with_what_follows_it(api):
    answer = api.post("/capabilities/probes", json={"check": "cpu"}, headers={"Idempotency-Key": "probe-once"})
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/jobs/{answer.json()['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    again = api.post("/capabilities/probes", json={"check": "cpu"}, headers={"Idempotency-Key": "probe-once"})
    assert again.json() == answer.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = api.post("/capabilities/probes", json={"check": "cuda"}, headers={"Idempotency-Key": "probe-once"})
    refused(other, 422, "idempotency-key-reused")
    assert api.until(answer.json()["id"], "succeeded", "failed", seconds=60)["state"] == "succeeded"


def test_required_cuda_fails_with_the_reason_of_the_probe(api, found):
    if any(operation["backends"]["cuda"]["available"] for operation in found["operations"]):
        pytest.skip("a GPU is there")
    answer = api.post(
        "/capabilities/probes", json={"check": "cuda", "require_cuda": True}, headers={"Prefer": "wait=60"}
    )
    job = answer.json()
    assert (job["state"], job["result"]) == ("failed", None)
    assert job["error"]["type"] == "/problems/backend-unavailable"
    assert job["error"]["instance"] == f"/jobs/{job['id']}"
    [cuda] = [probe for probe in found["engines"][0]["workers"][0]["probes"] if probe["name"] == "cuda"]
    assert cuda["detail"] in job["error"]["detail"]


def test_probes_wait_for_no_room(api, both_busy):
    answer = api.post("/capabilities/probes", json={"check": "dask"}, headers={"Prefer": "wait=30"})
    assert answer.json()["state"] == "succeeded"
    for job in both_busy:
        assert api.job(job["id"])["state"] == "running"


def test_several_at_once_all_end(api):
    with ThreadPoolExecutor(4) as pool:
        ask = {"json": {"check": "cpu"}, "headers": {"Prefer": "wait=60"}}
        answers = list(pool.map(lambda _: api.post("/capabilities/probes", **ask), range(4)))
    assert [answer.json()["state"] for answer in answers] == ["succeeded"] * 4


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"check": "tea"}, "/check"),
        ({"check": "all", "require_cuda": "yes"}, "/require_cuda"),
        ({"checks": "all"}, "/checks"),
        ([], ""),
    ],
)
def test_what_cannot_be_probed_is_refused(api, body, pointer):
    refused(api.post("/capabilities/probes", json=body), 422, "invalid-input", pointer)


def test_a_body_that_is_not_json_is_refused(api):
    refused(api.post("/capabilities/probes", content=b"{", headers=JSON), 422, "invalid-input", "")
    refused(api.post("/capabilities/probes", content=b"check=all"), 415, "unsupported-media-type")


def test_anybody_may_ask_whether_it_is_ready_and_it_looks_once_a_second(tmp_path):
    """Each look is a write."""
    desk = Desk(tmp_path / "home")
    house: Any = SimpleNamespace(
        stopping=asyncio.Event(), missing=Briefly(1.0), writer=desk.writer, reader=desk.reader, engines=Engines([])
    )

    async def often():
        assert await asyncio.gather(*(what_was_missing(house) for _ in range(50))) == [[]] * 50
        house.stopping.set()
        assert await what_was_missing(house) == ["the server is stopping"]

    asyncio.run(often())
    desk.close()
    assert len([statement for statement in desk.statements if "user_version" in statement]) == 2


# ---- the workers' door -----------------------------------------------------------------------------------------------


def newcomer(**fields):
    facts = {
        "version": VERSION,
        "id": "wk_stranger",
        "engine": "dask",
        "address": "tcp://127.0.0.1:9",
        "host": "h",
        "pid": 1,
        "resources": {"CPU": 1},
        "threads": 1,
        "memory_bytes": 1,
        "cpu": {},
        "gpus": [],
        "versions": {},
        "probes": [],
        "speed": {},
    }
    return facts | fields


@pytest.mark.parametrize(
    ("fields", "slug", "said"),
    [
        ({}, "not-on-this-cluster", "--scheduler"),
        ({"engine": "ray"}, "not-on-this-cluster", "TIDEMILL_ENGINE"),
        ({"version": "1"}, "version-mismatch", f"the server version {VERSION}"),
    ],
)
def test_a_worker_whose_cluster_gets_no_jobs_from_here_is_refused(api, fields, slug, said):
    document = refused(api.post("/internal/workers", json=newcomer(**fields), headers=SPOKEN), 409, slug)
    assert said in document["detail"]


def test_a_piece_whose_attempt_is_over_is_told_to_stop(api, found):
    worker = found["engines"][0]["workers"][0]["id"]
    piece = {"attempt": "att_over", "claim": "nonce"}
    answer = api.post(f"/internal/workers/{worker}/report", json={"running": [], "pieces": [piece]}, headers=SPOKEN)
    assert answer.json()["stop"] == ["att_over"]


def test_whoever_does_not_hold_the_attempt_makes_nobody_probe(api):
    answer = api.post("/internal/attempts/att_none/probes", json={"claim": "nonce", "check": "all"}, headers=SPOKEN)
    refused(answer, 409, "claim-refused")
