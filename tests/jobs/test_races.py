"""Things that happen at the same moment, or in the wrong order: no job is lost, and none succeeds twice."""

import pytest

from app.control.attempts import ClaimRefused
from app.kit.problems import NotFound
from tests.jobs.yard import Yard
from workers.contract import Artifact, EventType

DONE = {"summary": {"motif": {"index": 1, "neighbor": 5, "distance": 0.5}}, "provenance": {"seconds": 1.0}}
FILE = Artifact(name="result.npz", bytes=3, sha256="00", media_type="application/x-npz")


def states(yard: Yard, job: str) -> list[str]:
    return [data["to"] for kind, data in yard.log(job) if kind == "state"]


def all_free(yard: Yard) -> bool:
    return all(free == {"CPU": 1} for free in yard.free().values())


# ---- claims --------------------------------------------------------------------------------------------------------


def test_of_two_executions_of_one_attempt_one_runs(yard):
    """Dask runs a task again when it believes its worker dead."""
    worker, job = yard.join(), yard.submit()
    [attempt] = yard.place()
    yard.claim(attempt.id, "first", worker)
    with pytest.raises(ClaimRefused, match="another execution"):
        yard.claim(attempt.id, "second", worker)
    yard.event(attempt.id, "second", 1, EventType.PHASE, phase="computing")
    yard.outcome(attempt.id, "second", "succeeded", summary={"wrong": True})
    assert yard.job(job).state == "running"
    assert yard.job(job).phase == "starting"
    assert yard.to_stop({attempt.id: "second"}) == {attempt.id}
    assert yard.to_stop({attempt.id: "first"}) == set()
    yard.outcome(attempt.id, "first", "succeeded", **DONE)
    assert yard.job(job).result == DONE["summary"]


def test_a_claim_whose_answer_got_lost_is_granted_again(yard):
    worker, job = yard.join(), yard.submit()
    attempt = yard.begin(job, "mine")
    claimed_at = yard.attempts(job)[0].claimed_at
    yard.claim(attempt.id, "mine", worker)
    assert yard.attempts(job)[0].claimed_at == claimed_at


def test_a_worker_cannot_claim_what_was_placed_on_another(yard):
    yard.join()
    yard.submit()
    [attempt] = yard.place()
    with pytest.raises(ClaimRefused, match=f"placed on worker {attempt.worker_id}"):
        yard.claim(attempt.id, "nonce", "another")
    yard.claim(attempt.id, "nonce", attempt.worker_id)


def test_an_attempt_that_never_was_cannot_be_claimed(yard):
    with pytest.raises(NotFound, match="att_none"):
        yard.claim("att_none", "nonce", "w1")


# ---- cancels -------------------------------------------------------------------------------------------------------


def test_a_cancel_before_the_claim_ends_the_job_at_once(yard):
    worker, job = yard.join(), yard.submit()
    [attempt] = yard.place()
    yard.cancel(job)
    assert states(yard, job) == ["queued", "running", "cancelling", "cancelled"]
    assert all_free(yard)
    with pytest.raises(ClaimRefused, match="ended"):
        yard.claim(attempt.id, "nonce", worker)


def test_a_cancel_after_the_claim_waits_for_the_worker(yard):
    yard.join()
    job = yard.submit()
    attempt = yard.begin(job)
    yard.cancel(job)
    yard.cancel(job)
    assert yard.job(job).state == "cancelling"
    assert yard.to_stop({attempt.id: "nonce"}) == {attempt.id}
    assert not all_free(yard)
    yard.outcome(attempt.id, "nonce", "stopped")
    assert states(yard, job) == ["queued", "running", "cancelling", "cancelled"]
    assert all_free(yard)


def test_a_result_that_comes_after_the_cancel_was_accepted_does_not_count(yard):
    yard.join()
    job = yard.submit()
    attempt = yard.begin(job)
    yard.cancel(job)
    yard.outcome(attempt.id, "nonce", "succeeded", artifacts=[FILE], **DONE)
    assert yard.job(job).state == "cancelled"
    assert yard.job(job).result is None
    assert not [kind for kind, _ in yard.log(job) if kind == "artifact"]


@pytest.mark.parametrize("how", ["leaves", "dies", "loses the driver", "server stops"])
def test_a_worker_that_goes_while_its_job_is_cancelling_ends_the_job(yard, how):
    worker, job = yard.join(), yard.submit()
    yard.begin(job)
    yard.cancel(job)
    if how == "leaves":
        yard.run(yard.reconciler.dismiss(worker))
    elif how == "dies":
        yard.vanish(worker)
        yard.sweep()
    elif how == "loses the driver":
        yard.minutes_pass()
        yard.sweep()
    else:
        yard.start_anew()
        yard.run(yard.reconciler.recover())
    assert yard.job(job).state == "cancelled"
    assert yard.place() == []


# ---- the server's own stops ----------------------------------------------------------------------------------------


def test_a_crash_between_placing_and_handing_over_costs_nothing(yard):
    yard.join()
    job = yard.submit(max_attempts=1)
    yard.place()
    yard.start_anew()
    yard.run(yard.reconciler.recover())
    assert yard.job(job).state == "queued"
    assert yard.job(job).attempts_counted == 0
    yard.join()
    yard.dispatch()
    assert yard.engine.submitted == [yard.attempts(job)[1].id]


def test_on_a_cluster_that_outlives_the_server_it_is_handed_over_again_under_the_same_key(outside):
    yard = outside
    yard.join()
    job = yard.submit()
    [attempt] = yard.place()
    yard.start_anew()
    yard.run(yard.reconciler.recover())
    yard.sweep()
    assert yard.engine.submitted == []  # it may just have been handed over, and the claim be on its way
    yard.minutes_pass()
    yard.sweep()
    assert yard.engine.submitted == [attempt.id]
    yard.claim(attempt.id, "nonce", attempt.worker_id)
    yard.sweep()
    assert yard.engine.submitted == [attempt.id]
    yard.outcome(attempt.id, "nonce", "succeeded", **DONE)
    assert yard.job(job).attempt == 1


def test_what_the_engine_did_not_take_is_handed_over_when_it_is_back(yard):
    yard.join()
    yard.submit()
    yard.engine.up = False
    yard.dispatch()
    yard.minutes_pass()
    yard.sweep()
    assert yard.engine.submitted == []
    yard.engine.up = True
    yard.sweep()
    assert len(yard.engine.submitted) == 1


def test_the_servers_stops_never_use_up_a_jobs_attempts(yard):
    job = yard.submit(max_attempts=1)
    for _ in range(5):
        yard.join()
        yard.begin(job)
        yard.start_anew()
        yard.run(yard.reconciler.recover())
    assert yard.job(job).state == "queued"
    assert yard.job(job).attempt == 5
    assert [attempt.end for attempt in yard.attempts(job)] == ["ServerStopped"] * 5


def test_what_ran_on_an_outside_cluster_goes_on_over_a_restart(outside):
    yard = outside
    worker = yard.join()
    job = yard.submit()
    attempt = yard.begin(job)
    yard.minutes_pass()
    yard.start_anew()
    yard.run(yard.reconciler.recover())
    yard.sweep()  # the worker has not found the server yet
    assert yard.job(job).state == "running"
    yard.reconciler.hear(worker, [attempt.id])
    yard.sweep()
    yard.outcome(attempt.id, "nonce", "succeeded", **DONE)
    assert yard.job(job).state == "succeeded"
    assert yard.job(job).attempt == 1


# ---- lost workers --------------------------------------------------------------------------------------------------


def test_an_outcome_of_a_worker_that_was_given_up_counts_nothing(yard):
    lost, job = yard.join(), yard.submit()
    first = yard.begin(job, "first")
    yard.vanish(lost)
    yard.sweep()
    assert yard.job(job).state == "queued"
    yard.join(name=lost)
    assert yard.to_stop({first.id: "first"}) == {first.id}
    yard.outcome(first.id, "first", "succeeded", summary={"late": True})
    assert yard.job(job).state == "queued"

    second = yard.begin(job, "second")
    yard.outcome(first.id, "first", "succeeded", summary={"late": True})
    yard.event(first.id, "first", 1)
    assert yard.job(job).state == "running"
    yard.outcome(second.id, "second", "succeeded", **DONE)
    yard.outcome(first.id, "first", "failed", error={"type": "/problems/internal"})
    assert yard.job(job).result == DONE["summary"]
    assert states(yard, job) == ["queued", "running", "queued", "running", "succeeded"]


def test_a_result_on_the_disk_of_a_worker_that_died_is_taken(yard):
    worker, job = yard.join(), yard.submit()
    attempt = yard.begin(job)
    yard.leave_outcome(attempt, "nonce", "succeeded", artifacts=[FILE], **DONE)
    yard.vanish(worker)
    yard.sweep()
    assert yard.job(job).state == "succeeded"
    yard.outcome(attempt.id, "nonce", "succeeded", artifacts=[FILE], **DONE)
    assert [kind for kind, _ in yard.log(job)].count("artifact") == 1
    assert yard.job(job).attempt == 1


def test_a_result_of_another_execution_on_the_disk_is_not(yard):
    worker, job = yard.join(), yard.submit()
    attempt = yard.begin(job)
    yard.leave_outcome(attempt, "another", "succeeded", **DONE)
    yard.vanish(worker)
    yard.sweep()
    assert yard.job(job).state == "queued"


@pytest.mark.parametrize("left", [b'{"end": "succ', b'{"from": "another version"}'])
@pytest.mark.parametrize("when", ["worker lost", "server started"])
def test_an_outcome_file_that_cannot_be_read_costs_the_attempt_and_no_more(yard, left, when):
    worker, job, other = yard.join(), yard.submit(), yard.submit()
    attempt = yard.begin(job)
    yard.leave_outcome(attempt, "nonce", "succeeded")
    (yard.files.attempt(job, 1) / "outcome.json").write_bytes(left)
    yard.vanish(worker)
    if when == "worker lost":
        yard.sweep()
    else:
        yard.start_anew()
        yard.run(yard.reconciler.recover())
    assert yard.job(job).state == yard.job(other).state == "queued"


def test_a_job_whose_workers_keep_dying_fails_in_the_end(yard):
    job = yard.submit(max_attempts=2)
    for _ in range(2):
        worker = yard.join()
        yard.begin(job)
        yard.vanish(worker)
        yard.sweep()
    assert states(yard, job) == ["queued", "running", "queued", "running", "failed"]
    error = yard.job(job).error
    assert error["type"] == "/problems/worker-lost"
    assert "max_attempts is 2" in error["detail"]
    assert error["instance"] == f"/jobs/{job}"


def test_an_attempt_that_nobody_had_begun_is_no_fault_of_the_job(yard):
    worker, job = yard.join(), yard.submit(max_attempts=1)
    yard.place()
    yard.vanish(worker)
    yard.sweep()
    assert yard.job(job).state == "queued"
    assert yard.job(job).attempts_counted == 0


def test_an_attempt_that_its_worker_no_longer_reports_is_lost(yard):
    worker, job = yard.join(), yard.submit()
    attempt = yard.begin(job)
    yard.sweep()
    assert yard.job(job).state == "running"  # claimed a moment ago; the next report will have it
    yard.minutes_pass()
    yard.reconciler.hear(worker, [attempt.id])
    yard.sweep()
    assert yard.job(job).state == "running"
    yard.reconciler.hear(worker, [])
    yard.sweep()
    assert yard.job(job).state == "queued"
    assert yard.job(job).attempts_counted == 1


def test_a_worker_that_leaves_in_good_order_costs_no_attempt(yard):
    worker, job = yard.join(), yard.submit(max_attempts=1)
    yard.begin(job)
    yard.run(yard.reconciler.dismiss(worker))
    yard.run(yard.reconciler.dismiss(worker))
    assert states(yard, job) == ["queued", "running", "queued"]


# ---- reports -------------------------------------------------------------------------------------------------------


def test_a_report_that_is_sent_twice_counts_once(yard):
    yard.join()
    job = yard.submit()
    attempt = yard.begin(job)
    for _ in range(2):
        yard.event(attempt.id, "nonce", 1, EventType.PHASE, phase="computing")
        yard.event(attempt.id, "nonce", 2, EventType.PROGRESS, fraction=0.5, done=1, total=2, unit="x", eta_seconds=1.0)
    for _ in range(2):
        yard.outcome(attempt.id, "nonce", "succeeded", artifacts=[FILE], **DONE)
    assert [kind for kind, _ in yard.log(job)] == ["state", "state", "phase", "progress", "artifact", "state"]
    assert yard.job(job).progress["fraction"] == 1.0


def test_a_failed_job_keeps_its_error_and_no_result(yard):
    yard.join()
    job = yard.submit()
    attempt = yard.begin(job)
    yard.outcome(attempt.id, "nonce", "failed", error={"type": "/problems/out-of-memory", "status": 500})
    ended = yard.job(job)
    assert (ended.state, ended.result) == ("failed", None)
    assert ended.error == {"type": "/problems/out-of-memory", "status": 500, "instance": f"/jobs/{job}"}


# ---- time limits ---------------------------------------------------------------------------------------------------


def test_a_job_over_time_fails_at_once_and_its_slot_is_free_when_its_work_has_stopped(yard):
    worker, job, next_one = yard.join(), yard.submit(timeout_seconds=60), yard.submit()
    attempt = yard.begin(job)
    yard.reconciler.hear(worker, [attempt.id])
    yard.minutes_pass()
    yard.sweep()
    assert yard.job(job).error["type"] == "/problems/timeout"
    assert yard.to_stop({attempt.id: "nonce"}) == {attempt.id}
    assert yard.place() == []
    yard.outcome(attempt.id, "nonce", "succeeded", **DONE)
    assert (yard.job(job).state, yard.job(job).result) == ("failed", None)
    assert [attempt.job_id for attempt in yard.place()] == [next_one]


def test_the_limit_counts_all_attempts_together(yard):
    worker, job = yard.join(), yard.submit(timeout_seconds=400)
    yard.begin(job, "first")
    yard.minutes_pass()
    yard.run(yard.reconciler.dismiss(worker))
    assert 300 <= yard.job(job).seconds_used < 310
    worker = yard.join()
    second = yard.begin(job, "second")
    yard.minutes_pass()
    yard.reconciler.hear(worker, [second.id])
    yard.sweep()
    assert yard.job(job).error["type"] == "/problems/timeout"


def test_a_job_without_time_left_is_not_placed_again(yard):
    worker, job = yard.join(), yard.submit(timeout_seconds=60)
    yard.begin(job)
    yard.minutes_pass()
    yard.run(yard.reconciler.dismiss(worker))
    yard.join()
    assert yard.place() == []
    yard.sweep()
    assert states(yard, job) == ["queued", "running", "queued", "failed"]


def test_waiting_is_not_running(yard):
    yard.join()
    job = yard.submit(timeout_seconds=60)
    yard.place()
    yard.minutes_pass()
    yard.sweep()
    assert yard.job(job).state == "running"


# ---- placing -------------------------------------------------------------------------------------------------------


def test_higher_priority_first_and_the_oldest_among_equals(yard):
    jobs = {name: yard.submit(priority=priority) for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5)]}
    placed = []
    yard.join()
    for _ in jobs:
        [attempt] = yard.place()
        placed.append(attempt.job_id)
        yard.claim(attempt.id, "nonce", attempt.worker_id)
        yard.outcome(attempt.id, "nonce", "succeeded", **DONE)
    assert placed == [jobs[name] for name in "bdac"]


def test_one_round_fills_every_free_worker_and_no_more(yard):
    for cores in (1, 2, 3):
        yard.join(threads=1, cores=cores)
    for _ in range(8):
        yard.submit()
    assert len(yard.place()) == 6
    assert yard.place() == []
    assert all(free == {"CPU": 0} for free in yard.free().values())
    yard.check()


def test_a_worker_that_is_gone_gets_nothing(yard):
    worker = yard.join()
    yard.submit()
    yard.vanish(worker)
    yard.sweep()
    assert yard.place() == []
    yard.join(name=worker)
    assert len(yard.place()) == 1


def test_the_engine_forgets_what_ended_without_it(yard):
    yard.join()
    job = yard.submit()
    yard.dispatch()
    yard.sweep()
    [attempt] = yard.engine.submitted
    yard.cancel(job)
    yard.sweep()
    assert yard.engine.forgotten == [attempt]
