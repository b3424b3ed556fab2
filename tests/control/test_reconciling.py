"""Workers that are silent, come back, or are started again at the same address."""

import pytest

from app.db.tables import WorkerRow


def silent_for(yard, worker: str, seconds: float) -> None:
    yard.reconciler._heard[worker] -= seconds


def state(yard, worker: str) -> str:
    return yard.read(lambda db: db.get_one(WorkerRow, worker)).state


@pytest.mark.parametrize("cut_off", ["its reports", "its cluster"])
def test_a_short_cut_loses_nothing(yard, cut_off):
    """The reports of a worker, or the answers of its cluster, stay away for a while: others are there to tell that it lives."""
    worker = yard.join()
    attempt = yard.begin(yard.queue())
    yard.minutes_pass()
    yard.reconciler.hear(worker, [attempt.id])
    if cut_off == "its cluster":
        yard.engine.up = False
    else:
        silent_for(yard, worker, 29)
    yard.sweep()
    assert (yard.job(attempt.job_id).state, state(yard, worker)) == ("running", "up")
    if cut_off == "its reports":
        silent_for(yard, worker, 2)
        yard.sweep()
        assert (yard.job(attempt.job_id).state, state(yard, worker)) == ("queued", "gone")


def test_a_worker_that_was_given_up_joins_again_and_stops_what_is_no_longer_its_own(yard):
    worker = yard.join()
    attempt = yard.begin(yard.queue(), "first")
    silent_for(yard, worker, 31)
    yard.sweep()
    yard.join(name=worker)
    assert yard.to_stop({attempt.id: "first"}) == {attempt.id}
    again = yard.begin(attempt.job_id, "second")
    yard.outcome(attempt.id, "first", "succeeded", summary={})
    assert yard.job(attempt.job_id).state == "running"
    yard.outcome(again.id, "second", "succeeded", summary={})
    assert yard.job(attempt.job_id).state == "succeeded"


def test_a_worker_that_was_started_again_at_its_address_takes_the_place_of_the_one_before(yard):
    """A container has the same address each time; nobody waits until the one before has been silent for long enough."""
    before = yard.join()
    attempt = yard.begin(yard.queue())
    yard.join(name="later", address=f"tcp://{before}")
    yard.sweep()
    assert (state(yard, before), state(yard, "later")) == ("gone", "up")
    assert "later has taken the place" in yard.log(attempt.job_id)[-1][1]["reason"]
    assert [again.worker_id for again in yard.place()] == ["later"]
