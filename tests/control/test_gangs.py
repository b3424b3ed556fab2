"""Gangs: the workers of a training job of several nodes, placed all at once or not at all, and lost with any one of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.control import attempts
from app.control.demand import Demand
from app.control.placing import Candidate, Share, choose, next_of
from app.control.queries import open_attempts, shares
from app.db.tables import Attempt, Job
from app.jobs import queries
from app.jobs.problems import JobNeeded
from tests.jobs.yard import OWNER


def worker(
    name: str, engine: str = "dask", free: bool = True, gpus: tuple[str, ...] = (), busy: tuple[int, ...] = ()
) -> Candidate:
    return Candidate(
        name, 2, {"CPU": 2 if free else 0}, engine, devices=dict(enumerate(gpus)),
        free_devices=frozenset(range(len(gpus))) - frozenset(busy), training_cuda="executed" if gpus else "absent",
    )  # fmt: skip


def resolved(nodes: int, accelerator: str = "cpu", devices: int = 1, indices: list[int] | None = None) -> dict:
    return {"num_nodes": nodes, "accelerator": accelerator, "devices": devices, "device_indices": indices}


@pytest.mark.parametrize(
    ("plan", "demand"),
    [
        ({"backend": "cpu", "resolved": resolved(1)}, Demand("training-cpu")),
        ({"backend": "dask", "resolved": resolved(2)}, Demand("training-cpu", 0, 2, "dask")),
        ({"backend": "cuda", "resolved": resolved(1, "cuda", 2)}, Demand("training-cuda", 2)),
        ({"backend": "ray", "resolved": resolved(3, "cuda", 2, [3, 1])}, Demand("training-cuda", (1, 3), 3, "ray")),
    ],
)
def test_what_a_training_job_asks_follows_from_what_it_resolves_to(plan, demand):
    assert Demand.of("training", plan) == demand
    assert Demand.parse(str(demand)) == demand


def test_a_gang_takes_workers_of_one_engine_or_none():
    workers = [worker("d1"), worker("r1", "ray"), worker("r2", "ray"), worker("d2", free=False)]
    choice = choose(Demand("training-cpu", nodes=2), workers)
    assert [share.worker_id for share in choice.shares] == ["r1", "r2"]
    assert choose(Demand("training-cpu", nodes=2, engine="dask"), workers) is None
    assert choose(Demand("training-cpu", nodes=3), workers) is None


def test_workers_of_one_machine_give_a_gang_no_device_twice():
    shared = ("a", "b")
    two = [worker("w1", gpus=shared), worker("w2", gpus=shared)]
    assert [dict(share.needs) for share in choose(Demand("training-cuda", 1, 2), two).shares] == [
        {"CPU": 2, "GPU:0": 1},
        {"CPU": 2, "GPU:1": 1},
    ]
    assert choose(Demand("training-cuda", 2, 2), two) is None
    assert choose(Demand("training-cuda", (0,), 2), two) is None


def test_small_jobs_behind_a_gang_do_not_take_the_worker_that_is_kept_for_it():
    workers = [worker("free"), worker("busy", free=False), worker("other", "ray")]
    gang, small = Demand("training-cpu", nodes=2, engine="dask"), Demand("cpu")
    assert next_of({gang: 1, small: 2}, workers)[1].shares == (Share("other", {"CPU": 2}),)
    assert next_of({gang: 1, small: 2}, workers[:2]) is None
    # One that was there before it goes first, and a gang that could never be placed keeps nothing.
    assert next_of({gang: 2, small: 1}, workers[:2])[0] == small
    assert next_of({gang: 1, small: 2}, workers[:1])[0] == small


@given(
    st.lists(st.tuples(st.sampled_from(["dask", "ray"]), st.booleans()), max_size=6),
    st.integers(1, 4),
    st.sampled_from(["", "dask", "ray"]),
)
def test_a_choice_is_whole_free_and_of_one_engine(around, nodes, engine):
    workers = [worker(f"w{i}", *each) for i, each in enumerate(around)]
    choice = choose(Demand("training-cpu", nodes=nodes, engine=engine), workers)
    room = {name: sum(each == (name, True) for each in around) for name in ("dask", "ray")}
    possible = max(count for name, count in room.items() if engine in ("", name))
    assert (choice is not None) == (possible >= nodes)
    if choice:
        chosen = [next(each for each in workers if each.worker_id == share.worker_id) for share in choice.shares]
        assert len({each.worker_id for each in chosen}) == nodes
        assert len({each.engine for each in chosen}) == 1
        assert all(each.free["CPU"] == 2 for each in chosen)


@pytest.mark.parametrize("lost", ["w1", "w2"])
def test_a_gang_is_leased_in_one_go_and_lost_with_any_of_its_workers(yard, lost):
    names = [yard.join(name=name) for name in ("w1", "w2")]
    job = yard.queue("training", backend="dask", resolved=resolved(2))
    attempt = yard.begin(job)
    taken = yard.read(lambda db: shares(db, attempt))
    assert [(share.worker_id, dict(share.needs)) for share in taken] == [(name, {"CPU": 1}) for name in names]
    assert {name: free["CPU"] for name, free in yard.free().items()} == {"w1": 0, "w2": 0}
    yard.vanish(lost)
    yard.sweep()
    assert yard.read(open_attempts) == []
    assert yard.job(job).state == "queued"
    assert attempt.id in yard.to_stop({attempt.id: "nonce"})


def test_what_a_stopped_or_failed_attempt_left_is_kept(yard):
    yard.join()
    job = yard.queue("training", backend="cpu", resolved=resolved(1))
    attempt = yard.begin(job)
    yard.cancel(job)
    left = {"name": "last.ckpt", "bytes": 3, "sha256": "00", "media_type": "application/octet-stream"}
    yard.outcome(attempt.id, "nonce", "stopped", artifacts=[left])
    assert yard.job(job).state == "cancelled"
    assert [row.name for row in yard.read(lambda db: queries.artifacts_of(db, job))] == ["last.ckpt"]
    assert ("artifact", left) in yard.log(job)


def test_a_job_whose_checkpoint_another_one_waits_for_is_not_deleted(yard):
    yard.join()
    first = yard.queue("training", backend="cpu", resolved=resolved(1))
    attempt = yard.begin(first)
    yard.outcome(attempt.id, "nonce", "failed", error={"type": "/problems/internal"})
    named = {"config": {"ckpt_path": {"job": first, "artifact": "last.ckpt"}}}
    second = yard.queue("training", params=named, backend="cpu", resolved=resolved(1))
    with pytest.raises(JobNeeded, match=second):
        yard.run(yard.jobs.delete(first, OWNER))
    yard.cancel(second)
    yard.run(yard.jobs.delete(first, OWNER))


def test_a_job_whose_input_is_gone_when_it_begins_fails_and_holds_nothing(yard):
    worker = yard.join()
    job = yard.queue("training", backend="cpu", resolved=resolved(1))
    attempt = yard.begin(job)
    yard.write(lambda db: attempts.refuse(db, db.get_one(Attempt, attempt.id), db.get_one(Job, job), "It is gone."))
    assert yard.job(job).state == "failed"
    assert yard.job(job).error["detail"].startswith("It is gone.")
    assert yard.free()[worker]["CPU"] == 1
    assert yard.place() == []
