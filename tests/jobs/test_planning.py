"""Where a job runs, and why: the table of what was asked and what the workers proved."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.control.placing import Candidate, choose, verdict
from app.jobs.planning import BACKENDS, EVIDENCE_ORDER, WorkerFacts, availability, plan
from app.jobs.problems import BackendUnavailable
from app.jobs.schemas import Execution
from workers.operations import OPERATIONS, Functions, Size

PROFILE = OPERATIONS["matrix_profile"]
ANYWHERE = replace(PROFILE, absent={})
"""The operation as a later release may have it: nothing keeps it from any backend but the workers."""
SIZE = Size(windows=1001, windows_against=None, window=50, k=1)
EVERYTHING = dict.fromkeys(BACKENDS, ("executed", "a small case ran"))


def worker(speed=1e6, threads=2, **evidence) -> WorkerFacts:
    return WorkerFacts("w", threads, speed, {name: (proof, f"{name} is {proof}") for name, proof in evidence.items()})


def planned(operation=PROFILE, normalize=True, size=SIZE, workers=(), **execution):
    return plan(operation, normalize, Execution.model_validate(execution), size, workers)


# ---- where ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [{}, {"backend": "auto"}, {"backend": "cpu"}, {"implementation": "stumpy"}])
@pytest.mark.parametrize("fallback", ["allow", "forbid"])
@pytest.mark.parametrize("workers", [(), [worker(cpu="executed")]])
def test_what_needs_nothing_special_runs_on_cpu_without_a_fallback(asked, fallback, workers):
    made = planned(workers=workers, fallback=fallback, **asked)
    assert (made.backend, made.implementation, made.function, made.device) == ("cpu", "stumpy", "stump", "cpu")
    assert made.fallback is None
    assert not made.acceleration_verified


@pytest.mark.parametrize("backend", ["dask", "ray", "cuda"])
@pytest.mark.parametrize("workers", [(), [WorkerFacts("w", 2, 1e6, EVERYTHING)]])
def test_what_this_release_cannot_do_falls_back_and_says_so_or_is_refused(backend, workers):
    made = planned(workers=workers, backend=backend)
    assert (made.backend, made.function) == ("cpu", "stump")
    assert made.fallback.wanted == backend
    assert made.fallback.reason in made.reasons[0]
    with pytest.raises(BackendUnavailable, match=f"'{backend}' was asked for, but ") as caught:
        planned(workers=workers, backend=backend, fallback="forbid")
    assert caught.value.status == 409
    assert [error.pointer for error in caught.value.errors] == ["/execution/backend"]
    assert made.fallback.reason in caught.value.detail


def test_tiles_fall_back_to_stumpy_and_say_so_or_are_refused():
    made = planned(implementation="tiles")
    assert (made.implementation, made.fallback.wanted) == ("stumpy", "tiles")
    with pytest.raises(BackendUnavailable) as caught:
        planned(implementation="tiles", fallback="forbid")
    assert [error.pointer for error in caught.value.errors] == ["/execution/implementation"]


def test_when_both_are_missing_the_backend_is_told_and_both_have_their_sentence():
    made = planned(backend="cuda", implementation="tiles")
    assert made.fallback.wanted == "cuda"
    assert any("tile" in reason for reason in made.reasons)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_each_backend_has_its_function(backend, normalize):
    made = planned(
        ANYWHERE, normalize, workers=[WorkerFacts("w", 2, 1e6, EVERYTHING)], backend=backend, fallback="forbid"
    )
    assert made.backend == backend
    assert made.function == PROFILE.functions[backend].pick(normalize)
    assert made.fallback is None
    assert any(f"`{made.function}`" in reason for reason in made.reasons)


def test_every_plan_gives_its_reasons():
    for backend in ("auto", *BACKENDS):
        for implementation in ("auto", "tiles", "stumpy"):
            reasons = planned(backend=backend, implementation=implementation).reasons
            assert len(reasons) >= 3
            assert all(reason.endswith(".") for reason in reasons)


# ---- evidence ------------------------------------------------------------------------------------------------------

proofs = st.sampled_from(EVIDENCE_ORDER)


@given(st.lists(proofs), st.sampled_from(BACKENDS))
def test_nothing_is_available_on_less_than_executed(shown, backend):
    workers = [worker(**{backend: proof}) for proof in shown]
    available, evidence, reason = availability(ANYWHERE, backend, workers)
    assert available == ("executed" in shown)
    assert evidence == max(shown, key=EVIDENCE_ORDER.index, default="absent")
    assert (reason is None) == available


@given(st.lists(proofs), st.sampled_from(sorted(PROFILE.absent)))
def test_what_this_release_lacks_is_not_available_on_any_proof(shown, backend):
    available, _, reason = availability(PROFILE, backend, [worker(**{backend: proof}) for proof in shown])
    assert not available
    assert reason


def test_the_reason_is_the_best_workers_own_word():
    workers = [worker(cuda="absent"), worker(cuda="simulated"), worker(cuda="importable")]
    assert availability(ANYWHERE, "cuda", workers) == (False, "simulated", "cuda is simulated")


def test_without_proof_it_says_what_is_missing():
    assert availability(ANYWHERE, "cuda", []) == (False, "absent", "no worker has joined yet")
    assert availability(ANYWHERE, "cuda", [worker(cpu="executed")]) == (
        False,
        "absent",
        "no worker has run the cuda probe",
    )
    elsewhere = replace(ANYWHERE, functions={"cpu": Functions("f", "g")})
    available, evidence, reason = availability(elsewhere, "cuda", [worker(cuda="executed")])
    assert (available, evidence) == (False, "absent")
    assert "has no function" in reason


# ---- the estimate --------------------------------------------------------------------------------------------------


def test_the_estimate_takes_the_slowest_worker_it_may_land_on():
    workers = [worker(speed=2e6), worker(speed=5e5), worker(speed=0.0)]
    assert planned(workers=workers).estimate.seconds == pytest.approx(1001 * 1000 / 2 / 5e5)
    join = replace(SIZE, windows_against=10)
    assert planned(workers=workers, size=join).estimate.seconds == pytest.approx(1001 * 10 / 5e5)


def test_without_a_measured_speed_there_is_no_estimate():
    assert planned().estimate.seconds is None
    assert planned(workers=[worker(speed=0.0)]).estimate.seconds is None
    assert planned().estimate.peak_bytes > 0


sizes = st.builds(
    Size, st.integers(1, 10**7), st.none() | st.integers(1, 10**7), st.integers(3, 1000), st.integers(1, 50)
)


@given(sizes, st.integers(1, 64))
def test_more_work_never_needs_less(size, threads):
    small = planned(size=size, workers=[worker(threads=threads)]).estimate
    bigger = replace(size, windows=size.windows * 2, k=size.k + 1)
    large = planned(size=bigger, workers=[worker(threads=threads + 1)]).estimate
    assert large.seconds >= small.seconds
    assert large.peak_bytes >= small.peak_bytes


# ---- placing -------------------------------------------------------------------------------------------------------

candidates = st.lists(
    st.builds(lambda threads, free: (threads, free), st.integers(1, 4), st.integers(-1, 8)), max_size=6
).map(lambda pairs: [Candidate(f"w{i}", threads, {"CPU": free}) for i, (threads, free) in enumerate(pairs)])


@given(candidates)
def test_a_job_takes_all_threads_of_the_fastest_worker_with_room(workers):
    choice = choose(workers)
    room = [w for w in workers if w.free["CPU"] >= w.threads]
    if not room:
        assert choice is None
        return
    [chosen] = [w for w in workers if w.worker_id == choice.worker_id]
    assert chosen in room
    assert choice.needs == {"CPU": chosen.threads}
    assert chosen.threads == max(w.threads for w in room)


@given(candidates)
def test_the_verdict_agrees_with_the_choice(workers):
    assert any(verdict(w).startswith("has room") for w in workers) == (choose(workers) is not None)


def test_a_worker_without_cpus_gets_nothing():
    assert choose([Candidate("w", 1, {}), Candidate("v", 1, {"GPU": 4})]) is None
