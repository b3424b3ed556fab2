"""Probes, run again on request: asked of every worker of every engine, kept as its evidence, and counted until they are too old."""

import pytest
from fastapi import Response

from app.capabilities import queries
from app.capabilities.probing import Probing
from app.engines.base import AskFailed
from app.jobs.planning import availability
from app.jobs.problems import QueueFull
from tests.jobs.yard import OWNER, Yard, proof
from workers.contract import ProbeParams
from workers.operations import OPERATIONS

PROFILE = OPERATIONS["matrix_profile"]


def probing(yard: Yard, max_queue: int = 10, evidence_seconds: float = 60.0) -> Probing:
    return Probing(yard.reader, yard.writer, yard.engines, max_queue, evidence_seconds)


def find(yard: Yard, **params):
    return yard.run(probing(yard).find(ProbeParams(**params), "/jobs/job_1"))


def answers(yard: Yard, worker: str, answer) -> None:
    for engine in yard.engines.values():
        engine.answers[f"tcp://{worker}"] = answer


def evidence(yard: Yard, worker: str, seconds: float = 60.0) -> dict[str, str]:
    facts = {each.id: each for each in yard.read(lambda db: queries.worker_facts(db, seconds))}
    return {name: found for name, (found, _) in facts[worker].evidence.items()}


def test_every_worker_of_every_engine_is_asked_and_what_it_finds_counts_at_once(yard):
    first, second = yard.join(cpu="executed", cuda="absent"), yard.join(engine="ray", cpu="absent")
    answers(yard, first, [proof("cuda", "executed")])
    answers(yard, second, [proof("cpu", "executed"), proof("ray", "executed")])
    findings = find(yard)
    assert findings.problem is None
    assert [probe.name for probe in findings.workers[second].probes] == ["cpu", "ray"]
    assert evidence(yard, first) == {"cpu": "executed", "cuda": "executed"}
    assert evidence(yard, second) == {"cpu": "executed", "ray": "executed"}


@pytest.mark.parametrize("fault", [TimeoutError(), AskFailed("no nursery")])
def test_a_worker_that_does_not_answer_is_named_and_the_others_count(yard, fault):
    silent, other = yard.join(cuda="absent"), yard.join()
    answers(yard, silent, fault)
    answers(yard, other, [proof("cpu", "executed")])
    findings = find(yard)
    assert findings.problem is None
    said = findings.workers[silent].error
    assert "120 s" in said if isinstance(fault, TimeoutError) else said == "no nursery"
    assert evidence(yard, silent) == {"cuda": "absent"}


def test_where_no_worker_answers_nothing_was_probed(yard):
    worker = yard.join()
    answers(yard, worker, AskFailed("no nursery"))
    assert find(yard).problem["type"] == "/problems/internal"
    assert "no nursery" in find(yard).problem["detail"]


def test_required_cuda_that_nobody_has_fails_with_the_reason(yard):
    worker = yard.join()
    answers(yard, worker, [proof("cuda", "simulated")])
    problem = find(yard, require_cuda=True).problem
    assert (problem["type"], problem["status"]) == ("/problems/backend-unavailable", 409)
    assert problem["detail"] == "CUDA is required, and no worker has executed a GPU function. cuda is simulated."
    assert problem["instance"] == "/jobs/job_1"
    answers(yard, yard.join(), [proof("cuda", "executed")])
    assert find(yard, require_cuda=True).problem is None


def test_cuda_that_is_required_is_probed_whatever_else_is(yard):
    worker = yard.join()
    answers(yard, worker, [proof("cuda", "executed")])
    assert find(yard, check="cpu", require_cuda=True).problem is None
    assert len(yard.engine.asked) == 2


def test_a_probe_too_old_to_count_makes_nothing_available_and_says_so(yard):
    worker = yard.join()
    yard.write(lambda db: queries.keep_probes(db, worker, []))
    answers(yard, worker, [proof("cuda", "executed", age_seconds=7200)])
    find(yard)
    [fresh] = yard.read(lambda db: queries.worker_facts(db, 7300))
    assert availability(PROFILE, "cuda", [fresh]) == (True, "executed", None)
    [stale] = yard.read(lambda db: queries.worker_facts(db, 3600))
    available, proved, reason = availability(PROFILE, "cuda", [stale])
    assert (available, proved) == (False, "absent")
    assert "the cuda probe of worker w1 is 2:00:0" in reason
    assert "counts for 1:00:00" in reason
    assert "POST /capabilities/probes" in reason


def test_what_a_worker_proved_goes_with_it(yard):
    worker = yard.join(cuda="executed")
    yard.vanish(worker)
    yard.sweep()
    assert yard.read(queries.worker_facts) == []


def test_fading_evidence_is_renewed_where_nothing_runs(yard):
    idle, busy, fresh = yard.join(), yard.join(), yard.join(cpu="executed")
    for worker in (idle, busy):
        answers(yard, worker, [proof("cpu", "executed", age_seconds=40)])
    find(yard)
    yard.queue()
    [attempt] = yard.place()
    fading = yard.read(probing(yard)._fading)
    assert {worker.id for worker in fading} == {idle, busy} - {attempt.worker_id}
    assert fresh not in {worker.id for worker in fading}


def test_a_job_that_probes_takes_no_room_and_ends_with_what_was_found(yard):
    yard.join()
    answer = yard.run(probing(yard).submit(ProbeParams(), OWNER, None, lambda jobs: Response(jobs[0].id)))
    job = bytes(answer.body).decode()
    attempt = yard.begin(job)
    assert yard.free() == {"w1": {"CPU": 1}}
    yard.outcome(attempt.id, "nonce", "succeeded", summary={"workers": {}})
    assert yard.job(job).result == {"workers": {}}


def test_a_full_queue_takes_no_probe_either(yard):
    with pytest.raises(QueueFull):
        yard.run(probing(yard, max_queue=0).submit(ProbeParams(), OWNER, None, lambda jobs: Response()))


def test_a_job_that_has_ended_says_what_its_estimate_came_to(yard):
    yard.join()
    job = yard.queue(estimate={"seconds": 4.0, "peak_bytes": 1})
    attempt = yard.begin(job)
    yard.outcome(
        attempt.id, "nonce", "succeeded", summary={}, provenance={"seconds": {"computing": 5.0, "saving": 1.0}}
    )
    assert yard.job(job).plan["estimate"] == {"seconds": 4.0, "peak_bytes": 1, "actual_seconds": 5.0, "ratio": 1.25}
