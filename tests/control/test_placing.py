"""Which worker gets the next job: the highest priority first, the oldest among equals, of those that some worker has room for."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.control.demand import Demand
from app.control.placing import Candidate, after, choose, verdict
from app.control.queries import devices, shares
from app.db.tables import Attempt, Job
from tests.jobs.yard import Yard

CUDA = {"backend": "cuda", "device": "cuda"}
SIMULATED = {"backend": "cuda", "device": "cuda-simulator"}
indices = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)
demands = st.one_of(
    st.builds(Demand, st.sampled_from(["anywhere", "cpu", "dask", "ray", "cuda-simulator"])),
    st.builds(Demand, st.just("cuda"), st.integers(1, 3)),
    st.builds(Demand, st.just("cuda"), indices.map(lambda each: tuple(sorted(each)))),
)


# ---- what a job asks of a worker -------------------------------------------------------------------------------------


@given(demands)
def test_a_demand_is_read_as_it_was_written(demand):
    assert Demand.parse(str(demand)) == demand


@pytest.mark.parametrize(
    ("kind", "plan", "demand"),
    [
        ("mpdist", {"backend": "cpu", "device": "cpu"}, Demand("cpu")),
        ("mpdist", {"backend": "ray", "device": "cpu", "devices": None}, Demand("ray")),
        ("mpdist", {"backend": "cuda", "device": "cuda", "devices": None}, Demand("cuda", 1)),
        ("mpdist", {"backend": "cuda", "device": "cuda", "devices": "auto"}, Demand("cuda", 1)),
        ("mpdist", {"backend": "cuda", "device": "cuda:0,1", "devices": 2}, Demand("cuda", 2)),
        ("mpdist", {"backend": "cuda", "device": "cuda:2,0", "devices": [2, 0]}, Demand("cuda", (0, 2))),
        ("mpdist", {"backend": "cuda", "device": "cuda-simulator", "devices": 1}, Demand("cuda-simulator")),
        ("probe", {"backend": "cpu", "device": "cpu"}, Demand("anywhere")),
    ],
)
def test_what_a_job_asks_follows_from_its_plan(kind, plan, demand):
    assert Demand.of(kind, plan) == demand


# ---- choosing --------------------------------------------------------------------------------------------------------


def worker(name="w", threads=2, engine="dask", cuda="absent", gpus=(), busy=(), cpu=None) -> Candidate:
    free = {"CPU": threads if cpu is None else cpu, "GPU": len(gpus) - len(busy)}
    return Candidate(
        name, threads, free, engine, cuda, dict(enumerate(gpus)), frozenset(range(len(gpus))) - frozenset(busy)
    )


def test_a_job_takes_all_threads_of_the_largest_worker_that_is_free():
    workers = [worker("small", 1), worker("large", 4), worker("taken", 8, cpu=7)]
    choice = choose(Demand("cpu"), workers)
    assert (choice.worker_id, choice.needs) == ("large", {"CPU": 4})
    assert choose(Demand("cpu"), [worker(cpu=1)]) is None
    assert choose(Demand("cpu"), []) is None


def test_a_job_without_a_gpu_goes_where_none_is_while_it_can():
    workers = [worker("gpu", 8, cuda="executed", gpus="ab"), worker("plain", 1)]
    assert choose(Demand("cpu"), workers).worker_id == "plain"
    assert choose(Demand("cpu"), workers[:1]).worker_id == "gpu"


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_job_that_spreads_has_its_home_on_its_own_engine(engine):
    workers = [worker("d", 4, "dask"), worker("r", 1, "ray")]
    assert choose(Demand(engine), workers).worker_id == engine[0]


def test_devices_are_leased_one_by_one():
    workers = [worker("one", cuda="executed", gpus="a"), worker("three", cuda="executed", gpus="bcd", busy=[0])]
    assert choose(Demand("cuda", 2), workers).needs == {"CPU": 2, "GPU:1": 1, "GPU:2": 1}
    assert choose(Demand("cuda", (1,)), workers).worker_id == "three"
    assert choose(Demand("cuda", (0,)), workers).worker_id == "one"
    assert choose(Demand("cuda", (0, 2)), workers) is None


def test_a_device_that_two_workers_share_is_taken_for_both():
    shared = [worker("dask", cuda="executed", gpus="a"), worker("ray", engine="ray", cuda="executed", gpus="a")]
    choice = choose(Demand("cuda", 1), shared)
    left = after(choice, shared)
    assert choose(Demand("cuda", 1), left) is None
    assert choose(Demand("cpu"), left).worker_id != choice.worker_id


@pytest.mark.parametrize(
    ("demand", "candidate", "said"),
    [
        (Demand("cpu"), worker(), "has room: all 2 computing threads are free"),
        (Demand("cpu"), worker(cpu=1), "is taken: 1 of 2 computing threads are free, and a job needs them all"),
        (Demand("anywhere"), worker(cpu=0), "can take it: the job needs no room"),
        (Demand("ray"), worker(), "is on the dask cluster, and the job runs on ray"),
        (Demand("cuda", 1), worker(), "has no GPU"),
        (Demand("cuda", 1), worker(gpus="a", cuda="importable"), "has a GPU, but its cuda probe proved no more than 'importable'"),
        (Demand("cuda", 2), worker(gpus="a", cuda="executed"), "has 1 GPU(s), and the job asks for 2"),
        (Demand("cuda", (0, 3)), worker(gpus="ab", cuda="executed"), "has no CUDA device 3"),
        (Demand("cuda", (1,)), worker(gpus="ab", cuda="executed", busy=[1]), "is taken: its CUDA device 1 is in use"),
        (Demand("cuda", 2), worker(gpus="ab", cuda="executed", busy=[1]), "is taken: 1 of 2 GPU(s) are free, and the job needs 2"),
        (Demand("cuda", 1), worker(gpus="ab", cuda="executed"), "has room: all 2 computing threads and 2 GPU(s) are free"),
        (Demand("cuda-simulator"), worker(), "does not run Numba's CUDA simulator"),
        (Demand("cuda-simulator"), worker(cuda="simulated"), "has room: all 2 computing threads are free"),
    ],
)  # fmt: skip
def test_each_worker_is_told_of_in_one_clause(demand, candidate, said):
    assert verdict(demand, candidate) == said


# ---- the queue -------------------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_a_gpu_keeps_nobody_else_waiting(yard):
    yard.join()
    waits = yard.queue(priority=100, **CUDA)
    for _ in range(3):
        yard.queue(priority=50, backend="ray")
    runs = yard.queue(priority=-100)
    assert [attempt.job_id for attempt in yard.place()] == [runs]
    yard.join(gpus=["a"])
    [attempt] = yard.place()
    assert attempt.job_id == waits
    assert yard.read(lambda db: shares(db, attempt))[0].needs == {"CPU": 1, "GPU:0": 1}
    assert yard.read(lambda db: devices(db, attempt)) == [0]


def test_an_engine_is_asked_for_what_it_tags(yard):
    yard.join(gpus=["a", "b"], threads=2)
    yard.queue(devices=[1], **CUDA)
    yard.dispatch()
    assert list(yard.engine.needs.values()) == [{"CPU": 2, "GPU": 1}]


def test_an_attempt_goes_to_the_engine_of_its_worker(yard):
    yard.join(engine="ray")
    yard.queue(backend="ray")
    yard.dispatch()
    assert (len(yard.engine.submitted), len(yard.engines["ray"].submitted)) == (0, 1)


def test_nothing_is_placed_on_a_cluster_that_is_down(yard):
    yard.join(threads=8)
    yard.join(engine="ray")
    yard.engine.address = None
    first, second = yard.queue(), yard.queue()
    assert [(attempt.job_id, attempt.worker_id) for attempt in yard.place()] == [(first, "w2")]
    yard.engine.address = "nowhere"
    assert [attempt.job_id for attempt in yard.place()] == [second]


def test_a_probe_job_waits_for_no_room(yard):
    yard.join()
    yard.queue()
    assert len(yard.place()) == 1
    probes = [yard.queue("probe", priority=-100) for _ in range(3)]
    assert [attempt.job_id for attempt in yard.place()] == probes
    assert yard.free() == {"w1": {"CPU": 0}}


def test_a_job_for_the_simulator_goes_where_it_runs(yard):
    yard.join(threads=8)
    simulating = yard.join(cuda="simulated")
    yard.queue(**SIMULATED)
    assert [attempt.worker_id for attempt in yard.place()] == [simulating]


def test_a_long_queue_of_large_jobs_is_looked_through_by_an_index(yard):
    """What a job was sent with may be megabytes; none of it is read to find the one that runs next."""
    yard.join()
    for _ in range(3):
        yard.queue(**CUDA)
    runs = yard.queue()
    yard.statements.clear()
    assert [attempt.job_id for attempt in yard.place()] == [runs]
    looks = [
        sql for sql in yard.statements if sql.startswith("SELECT") and "job.demand" in sql and "job.params" not in sql
    ]
    assert len(looks) >= 3
    for sql in looks:
        plan = [row[-1] for row in yard.look(f"EXPLAIN QUERY PLAN {sql}")]
        assert all("ix_job_demand" in step for step in plan), plan


# ---- whatever waits, and whoever is there ----------------------------------------------------------------------------

crews = st.lists(
    st.one_of(
        st.fixed_dictionaries({"engine": st.sampled_from(["dask", "ray"]), "threads": st.integers(1, 3)}),
        st.fixed_dictionaries({"gpus": st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)}),
        st.just({"cuda": "simulated"}),
    ),
    max_size=4,
)
plans = st.one_of(
    st.sampled_from([{}, {"backend": "dask"}, {"backend": "ray"}, SIMULATED, CUDA]),
    st.one_of(st.integers(1, 3), indices).map(lambda devices: {**CUDA, "devices": devices}),
)
queues = st.lists(st.tuples(st.integers(-1, 1), plans), max_size=9)


@settings(max_examples=60, deadline=None)
@given(crew=crews, queue=queues, later=queues)
def test_priority_and_age_decide_among_those_that_could_run(crew, queue, later):
    """Each placement, replayed against a plain reading of the rules: nobody who could have run was passed by, nothing is taken twice."""
    home = Path(tempfile.mkdtemp(prefix="yard"))
    yard = Yard(home / "home", ray="embedded")
    workers = {yard.join(**each): each for each in crew}
    free = dict.fromkeys(workers, True)
    taken: set[str] = set()
    waiting: list[tuple[int, int, str, dict]] = []

    def could_run(name: str, plan: dict) -> bool:
        about, devices = workers[name], plan.get("devices") or 1
        if not free[name] or (
            plan.get("backend") in ("dask", "ray") and about.get("engine", "dask") != plan["backend"]
        ):
            return False
        if plan == SIMULATED:
            return about.get("cuda") == "simulated"
        if plan.get("backend") != "cuda":
            return True
        mine = about.get("gpus", [])
        if isinstance(devices, list):
            return all(index < len(mine) and mine[index] not in taken for index in devices)
        return len([device for device in mine if device not in taken]) >= devices

    try:
        for jobs in (queue, later):
            waiting += [
                (-priority, len(waiting) + i, yard.queue(priority=priority, **plan), plan)
                for i, (priority, plan) in enumerate(jobs)
            ]
            for attempt in yard.place():
                able = [
                    job for job in sorted(waiting, key=lambda j: j[:2]) if any(could_run(w, job[3]) for w in workers)
                ]
                assert attempt.job_id == able[0][2]
                assert could_run(attempt.worker_id, able[0][3])
                held = yard.read(lambda db, it=attempt: devices_of_attempt(db, it))
                free[attempt.worker_id] = False
                taken |= {workers[attempt.worker_id]["gpus"][index] for index in held}
                waiting.remove(able[0])
            assert not [job for job in waiting if any(could_run(name, job[3]) for name in workers)]
            yard.check()
    finally:
        yard.close()
        shutil.rmtree(home)


def devices_of_attempt(db, attempt: Attempt) -> list[int]:
    wanted = db.get_one(Job, attempt.job_id).plan
    held = devices(db, attempt)
    if wanted["device"] == "cuda":
        asked = wanted["devices"] or 1
        assert held == sorted(asked) if isinstance(asked, list) else len(held) == asked
    else:
        assert held == []
    return held
