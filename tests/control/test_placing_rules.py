"""Whoever is there and whatever waits: the rules of placing, against a plain reading of them that tries everything."""

import itertools
from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.control.demand import Demand
from app.control.never import never
from app.control.placing import Candidate, Choice, after, choose, devices_of, next_of
from app.control.sharing import Offer, together

PROOFS = ["executed", "executed", "importable"]


@st.composite
def candidates(draw, most=5):
    """Workers of two clusters, some with GPUs, which those of one machine may share."""
    found = []
    for i in range(draw(st.integers(0, most))):
        devices = draw(st.one_of(st.just([]), st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)))
        threads = draw(st.integers(1, 2))
        proved = draw(st.sampled_from(PROOFS)) if devices else draw(st.sampled_from(["absent", "simulated"]))
        trained = draw(st.sampled_from(PROOFS)) if devices else "absent"
        engine = draw(st.sampled_from(["dask", "ray"]))
        found.append(
            Candidate(
                f"w{i}", threads, {"CPU": threads, "GPU": len(devices)}, engine, proved, dict(enumerate(devices)),
                frozenset(range(len(devices))), trained, draw(st.sampled_from([0, 3 << 30, 8 << 30])),
            )
        )  # fmt: skip
    return found


counts = st.one_of(
    st.integers(1, 3),
    st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True).map(lambda each: tuple(sorted(each))),
)
engines = st.sampled_from(["", "dask", "ray"])
gangs = st.one_of(
    st.builds(Demand, st.just("training-cpu"), st.just(0), st.integers(2, 4), engines),
    st.builds(Demand, st.just("training-cuda"), counts, st.integers(2, 3), engines),
)
singles = st.one_of(
    st.just(Demand("anywhere")),
    st.builds(Demand, st.sampled_from(["cpu", "dask", "ray", "cuda-simulator"]), gib=st.sampled_from([0, 0, 2, 4, 16])),
    st.builds(Demand, st.just("cuda"), counts, gib=st.sampled_from([0, 4])),
    st.builds(Demand, st.just("training-cpu"), st.just(0), st.just(1), engines),
    st.builds(Demand, st.just("training-cuda"), counts, st.just(1), engines),
)
demands = st.one_of(singles, gangs)


# ---- a plain reading of the rules ------------------------------------------------------------------------------------


def suitable(demand: Demand, worker: Candidate) -> bool:
    """Whether a worker could ever be one of the job's, as the rules say it."""
    wanted = demand.place if demand.place in ("dask", "ray") else demand.engine
    proofs = {"cuda": worker.cuda, "training-cuda": worker.training_cuda}
    return (
        wanted in ("", worker.engine)
        and (worker.memory_bytes == 0 or worker.memory_bytes >= demand.gib * 2**30)
        and (demand.place != "cuda-simulator" or worker.cuda == "simulated")
        and (demand.place not in proofs or (proofs[demand.place] == "executed" and bool(given_by(demand, worker))))
    )


def given_by(demand: Demand, worker: Candidate, free: frozenset[int] | None = None) -> list[set[str]]:
    """Each set of devices that a worker could give to one node."""
    indices = worker.devices if free is None else free
    if isinstance(demand.devices, tuple):
        return [{worker.devices[i] for i in demand.devices}] if set(demand.devices) <= set(indices) else []
    return [{worker.devices[i] for i in each} for each in itertools.combinations(sorted(indices), demand.devices)]


def fits(demand: Demand, workers: list[Candidate], all_free: bool = False) -> bool:
    """Whether the job could be placed, by trying every gang with every device."""
    able = [
        worker
        for worker in workers
        if suitable(demand, worker) and (all_free or demand.place == "anywhere" or worker.free["CPU"] >= worker.threads)
    ]
    for gang in itertools.combinations(able, demand.nodes):
        if len({worker.engine for worker in gang}) > 1:
            continue
        ways = [given_by(demand, worker, None if all_free else worker.free_devices) for worker in gang]
        for way in itertools.product(*ways):
            if len(set().union(*way)) == sum(map(len, way)):
                return True
    return False


@dataclass
class Queue:
    """Jobs that wait, each with a place of its own, and the workers they wait for."""

    workers: list[Candidate]
    waiting: dict[int, Demand]

    def place(self) -> list[tuple[int, Demand, Choice, list[Candidate]]]:
        """A round of the dispatcher: (place, demand, choice, the workers before it) of each job."""
        placed = []
        while found := next_of(self.heads(), self.workers):
            demand, choice = found
            job = self.heads()[demand]
            placed.append((job, demand, choice, self.workers))
            del self.waiting[job]
            self.workers = after(choice, self.workers)
        return placed

    def heads(self) -> dict[Demand, int]:
        heads: dict[Demand, int] = {}
        for job, demand in sorted(self.waiting.items()):
            heads.setdefault(demand, job)
        return heads


@settings(max_examples=400, deadline=None)
@given(candidates(), st.lists(demands, max_size=8))
def test_each_round_follows_the_rules(workers, queue):
    round_ = Queue(workers, dict(enumerate(queue)))
    by_id = {worker.worker_id: worker for worker in workers}
    taken, held = Counter(), Counter()
    for job, demand, choice, before in round_.place():
        names = [share.worker_id for share in choice.shares]
        gang = [by_id[name] for name in names]
        assert len(set(names)) == demand.nodes, "whole"
        assert len({worker.engine for worker in gang}) == 1
        assert all(suitable(demand, worker) for worker in gang), "on executed proof alone"
        if demand.place == "anywhere":
            assert not choice.needs
            continue
        taken.update(names)
        for worker, share in zip(gang, choice.shares, strict=True):
            indices = devices_of(share.needs)
            assert share.needs["CPU"] == worker.threads
            held.update(worker.devices[index] for index in indices)
            if isinstance(demand.devices, tuple):
                assert tuple(indices) == demand.devices
            else:
                assert len(indices) == demand.devices
        kept = any(waits < job and each.nodes > 1 for waits, each in round_.waiting.items())
        if not demand.devices and any(worker.devices for worker in gang) and not kept:
            plain = [worker for worker in before if not worker.devices]
            plain_free = [
                w for w in plain if w.worker_id not in names and suitable(demand, w) and w.free["CPU"] >= w.threads
            ]
            if demand.nodes == 1:
                assert not plain_free, "a GPU worker is left alone while another one is free"
            else:
                assert not [w for w in plain_free if w.engine == gang[0].engine]
    assert all(count == 1 for count in (*taken.values(), *held.values())), "nothing is leased twice"

    for _, demand in sorted(round_.waiting.items()):
        assert not fits(demand, round_.workers), f"{demand} was passed by"
        if demand.nodes > 1 and fits(demand, workers, all_free=True):
            break  # it keeps what it will take, so what comes behind it may wait beside free workers


@settings(max_examples=400, deadline=None)
@given(candidates(), demands)
def test_room_is_found_wherever_there_is_any(workers, demand):
    assert (choose(demand, workers) is not None) == fits(demand, workers)


@settings(max_examples=400, deadline=None)
@given(candidates(), demands)
def test_never_is_said_of_just_what_could_not_run_were_all_free(workers, demand):
    leased = workers
    for other in (Demand("cpu"), Demand("cuda", 1)):
        if choice := choose(other, leased):
            leased = after(choice, leased)
    assert (never(demand, leased) is None) == (not workers or fits(demand, workers, all_free=True))


@settings(max_examples=500, deadline=None)
@given(
    candidates(), gangs, st.lists(singles, min_size=1, max_size=4), st.lists(st.integers(1, 4), min_size=1, max_size=5)
)
def test_a_gang_that_is_its_turn_is_placed_although_small_jobs_never_end_to_come(workers, gang, small, lasts):
    """They end one after the other, so that hardly ever two workers are free at once, unless one is kept."""
    if not fits(gang, workers, all_free=True):
        return
    all_day = Queue(workers, dict(enumerate(small * 3)))
    ends: list[tuple[int, Choice]] = []
    """The tick at whose end each job ends."""
    numbers = itertools.count(1000)
    for tick in range(40):
        if tick == 1:
            all_day.waiting[-1] = gang  # it comes while they run, and is of higher priority
        all_day.waiting.update((next(numbers), each) for each in small)
        for job, _, choice, _ in all_day.place():
            if job == -1:
                return
            ends.append((tick + (lasts[len(ends) % len(lasts)] if tick == 0 else 4), choice))
        all_day.workers = released([choice for end, choice in ends if end == tick + 1], all_day.workers)
        ends = [each for each in ends if each[0] > tick + 1]
    raise AssertionError(f"{gang} starves")


def released(choices: list[Choice], workers: list[Candidate]) -> list[Candidate]:
    """The workers once these are done."""
    by_id = {worker.worker_id: worker for worker in workers}
    for share in (share for choice in choices for share in choice.shares):
        back = {by_id[share.worker_id].devices[index] for index in devices_of(share.needs)}
        for name, worker in by_id.items():
            free = worker.free_devices | {index for index, device in worker.devices.items() if device in back}
            cpu = share.needs.get("CPU", 0) if name == share.worker_id else 0
            now_free = {**worker.free, "CPU": worker.free["CPU"] + cpu, "GPU": len(free)}
            by_id[name] = replace(worker, free=now_free, free_devices=frozenset(free))
    return list(by_id.values())


# ---- single cases ----------------------------------------------------------------------------------------------------


def gpu_worker(name: str, devices: str, engine: str = "dask", free: bool = True) -> Candidate:
    return Candidate(
        name, 1, {"CPU": int(free)}, engine, "executed", dict(enumerate(devices)), frozenset(range(len(devices))), "executed"
    )  # fmt: skip


def test_a_gang_that_can_never_be_together_keeps_nobody_waiting():
    """Two workers of one machine, each of which has the only GPU: either could be a node, and never both at once."""
    shared = [gpu_worker("w1", "a"), gpu_worker("w2", "a")]
    gang, small = Demand("training-cuda", 1, 2, "dask"), Demand("cpu")
    assert next_of({gang: 1, small: 2}, shared)[0] == small
    assert "1" in never(gang, shared)


def test_workers_that_share_devices_give_a_gang_those_that_leave_enough_for_the_others():
    workers = [gpu_worker("w1", "ab"), gpu_worker("w2", "a")]
    choice = choose(Demand("training-cuda", 1, 2), workers)
    assert {share.worker_id: devices_of(share.needs) for share in choice.shares} == {"w1": [1], "w2": [0]}


def test_a_gpu_job_takes_the_worker_with_the_fewest_and_leaves_the_others_for_who_needs_more():
    workers = [gpu_worker("three", "abc"), gpu_worker("one", "d")]
    assert choose(Demand("cuda", 1), workers).worker_id == "one"


def test_a_gang_for_cpus_takes_the_cluster_that_spares_the_gpus():
    plain = [Candidate(name, 1, {"CPU": 1}, "ray") for name in ("r1", "r2")]
    choice = choose(Demand("training-cpu", nodes=2), [gpu_worker("d1", "a"), gpu_worker("d2", "b"), *plain])
    assert [share.worker_id for share in choice.shares] == ["r1", "r2"]


def test_probes_need_no_room_and_wait_behind_no_gang():
    workers = [gpu_worker("w1", "a"), gpu_worker("w2", "b", free=False)]
    gang, probe = Demand("training-cpu", nodes=2, engine="dask"), Demand("anywhere")
    assert next_of({gang: 1, probe: 2}, workers)[0] == probe


def test_a_device_that_a_gang_waits_for_goes_to_nobody_else_meanwhile():
    """The worker of the other cluster has the same device; what it would take of it is the gang's next."""
    dask = [gpu_worker("d1", "a"), gpu_worker("d2", "b", free=False)]
    ray = [gpu_worker("r1", "a", "ray")]
    gang, other = Demand("training-cuda", 1, 2, "dask"), Demand("cuda", 1)
    assert next_of({gang: 1, other: 2}, [*dask, *ray]) is None
    assert next_of({other: 2}, [*dask, *ray])[0] == other


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, unique=True), st.integers(1, 3)), max_size=5),
    st.integers(1, 4),
)
@example([("ab", 1), ("a", 1)], 2)
def test_devices_are_shared_out_wherever_that_is_possible(offered, nodes):
    offers = [Offer(dict(enumerate(devices)), count) for devices, count in offered if count <= len(devices)]
    given_ = together(nodes, offers)
    ways = [[set(each) for each in itertools.combinations(o.devices.values(), o.count)] for o in offers]
    possible = any(
        len(set().union(*way)) == sum(map(len, way))
        for gang in itertools.combinations(ways, nodes)
        for way in itertools.product(*gang)
    )
    assert (given_ is not None) == possible
    if given_ is not None:
        told = [offers[place].devices[index] for place, indices in given_.items() for index in indices]
        assert len(given_) == nodes
        assert len(told) == len(set(told))
        assert all(len(indices) == offers[place].count for place, indices in given_.items())
