"""Where a job runs, and why: the table of what was asked and what the workers proved."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.jobs.checks import CHECKS
from app.jobs.checks.facts import SeriesFacts
from app.jobs.planning import BACKENDS, EVIDENCE_ORDER, WorkerFacts, availability, plan
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import Execution
from tests.jobs.planned import anything, params_of, planned, series_of, worker
from workers.operations import OPERATIONS

PROFILE = OPERATIONS["matrix_profile"]
EVERYWHERE = [anything("a"), anything("b"), anything("c", "ray"), anything("d", "ray")]
TABLE = [(kind, backend) for kind in OPERATIONS for backend in OPERATIONS[kind].functions]


# ---- the table of functions ------------------------------------------------------------------------------------------


def test_the_table_has_every_function_of_the_library():
    names = {
        name
        for each in OPERATIONS.values()
        for pair in each.functions.values()
        for name in (pair.normalised, pair.p_norm)
    }
    assert names == {
        *("stump", "mstump", "mpdist", "ostinato", "stimp", "aamp", "maamp", "aampdist", "aamp_ostinato", "aamp_stimp"),
        *("stumped", "mstumped", "mpdisted", "ostinatoed", "stimped"),
        *("aamped", "maamped", "aampdisted", "aamp_ostinatoed", "aamp_stimped"),
        *("gpu_stump", "gpu_mpdist", "gpu_ostinato", "gpu_stimp"),
        *("gpu_aamp", "gpu_aampdist", "gpu_aamp_ostinato", "gpu_aamp_stimp"),
    }
    assert len(names) == 28


@pytest.mark.parametrize(("kind", "backend"), TABLE)
@pytest.mark.parametrize("normalize", [True, False])
def test_each_backend_has_its_function(kind, backend, normalize):
    asked = {"backend": backend, "implementation": "stumpy", "fallback": "forbid"}
    made = planned(kind, 1050, EVERYWHERE, {"normalize": normalize}, **asked)
    assert made.backend == backend
    assert made.implementation == "stumpy"
    assert made.function == OPERATIONS[kind].functions[backend].pick(normalize)
    assert made.fallback is None
    assert made.acceleration_verified == (backend == "cuda")
    assert made.workers == {"dask": 2, "ray": 2}.get(backend, 1)
    assert made.device == ("cuda" if backend == "cuda" else "cpu")
    assert any(f"`{made.function}`" in reason for reason in made.reasons)


@pytest.mark.parametrize("kind", OPERATIONS)
@pytest.mark.parametrize("fallback", ["allow", "forbid"])
@pytest.mark.parametrize("workers", [(), [worker(cpu="executed")]])
@pytest.mark.parametrize("asked", [{}, {"backend": "auto"}, {"backend": "cpu"}, {"implementation": "stumpy"}])
def test_what_needs_nothing_special_runs_on_cpu_without_a_fallback(kind, asked, fallback, workers):
    made, operation = planned(kind, 200, workers, fallback=fallback, **asked), OPERATIONS[kind]
    tiled = operation.tiles and "implementation" not in asked
    assert (made.backend, made.device, made.devices) == ("cpu", "cpu", None)
    assert made.implementation == ("tiles" if tiled else "stumpy")
    assert made.function == (operation.tiles.names[0] if tiled else operation.functions["cpu"].normalised)
    assert made.fallback is None
    assert not made.acceleration_verified


# ---- tiles -----------------------------------------------------------------------------------------------------------

ANOTHER = {"against": {"values": []}}
TILED = {
    "a self-join": ("matrix_profile", {}, "tiles.self_join"),
    "an AB-join": ("matrix_profile", ANOTHER, "tiles.ab_join"),
    "Euclidean": ("matrix_profile", {"normalize": False}, "tiles.self_join"),
    "an exponent nobody uses": ("matrix_profile", {"p": 3.0}, "tiles.self_join"),
    "mpdist": ("mpdist", {"k": 7}, "tiles.mpdist"),
    "a consensus": ("consensus_motif", {"normalize": False, "p": 2.0}, "tiles.consensus_motif"),
    "an exact pan profile": ("pan_profile", {"percentage": 1.0}, "tiles.pan_profile"),
}


@pytest.mark.parametrize(("kind", "params", "function"), TILED.values(), ids=list(TILED))
@pytest.mark.parametrize("backend", ["cpu", "dask", "ray"])
@pytest.mark.parametrize("asked", [{}, {"implementation": "auto"}, {"implementation": "tiles"}])
def test_tiles_are_taken_wherever_they_apply(kind, params, function, backend, asked):
    made = planned(kind, 1050, EVERYWHERE, params, backend=backend, fallback="forbid", **asked)
    assert (made.implementation, made.function, made.backend) == ("tiles", function, backend)
    assert made.fallback is None
    assert any("Our own kernel" in reason for reason in made.reasons)


BEYOND = {
    "several neighbours": ("matrix_profile", {"k": 2}, {}, "nearest neighbour alone, and k is 2"),
    "another norm": ("mpdist", {"normalize": False, "p": 1.5}, {}, "p is 1.5"),
    "an approximation": ("pan_profile", {"percentage": 0.5}, {}, "an approximation was asked for (percentage 0.5)"),
    "dimensions": ("multidimensional_profile", {}, {}, "no kernel of tiles for a multidimensional profile"),
    "a GPU": ("matrix_profile", {}, {"backend": "cuda"}, "tiles run on CPUs alone"),
}


@pytest.mark.parametrize(("kind", "params", "asked", "reason"), BEYOND.values(), ids=list(BEYOND))
def test_what_tiles_do_not_compute_is_stumpys_and_says_why(kind, params, asked, reason):
    made = planned(kind, 1050, EVERYWHERE, params, **asked)
    assert (made.implementation, made.fallback) == ("stumpy", None)
    assert any(reason in each for each in made.reasons)
    wanted = planned(kind, 1050, EVERYWHERE, params, implementation="tiles", **asked)
    assert (wanted.implementation, wanted.fallback.wanted) == ("stumpy", "tiles")
    assert reason in wanted.fallback.reason
    with pytest.raises(BackendUnavailable, match="'tiles' was asked for, but") as caught:
        planned(kind, 1050, EVERYWHERE, params, implementation="tiles", fallback="forbid", **asked)
    assert [error.pointer for error in caught.value.errors] == ["/execution/implementation"]


def test_tiles_asked_for_by_name_are_not_left_for_a_gpu():
    assert planned(length=9000, workers=EVERYWHERE).backend == "cuda"
    made = planned(length=9000, workers=EVERYWHERE, implementation="tiles", fallback="forbid")
    assert (made.backend, made.implementation) == ("dask", "tiles")


def test_tiles_spread_sooner():
    workers = cluster("dask", 2)
    assert planned(length=1100, workers=workers).backend == "dask"  # 0.55 s on one worker
    assert planned(length=1100, workers=workers, implementation="stumpy").backend == "cpu"


def test_a_ray_plan_says_whose_path_it_takes():
    assert any(
        "experimental and is not used" in reason
        for reason in planned(workers=EVERYWHERE, backend="ray", implementation="stumpy").reasons
    )
    assert not any("experimental" in reason for reason in planned(workers=EVERYWHERE, backend="dask").reasons)


# ---- fallbacks and refusals ------------------------------------------------------------------------------------------

DASK_ONLY = [worker("a", cpu="executed", dask="executed", cuda="absent")]
IN_SIMULATION = [worker("a", cpu="executed", dask="executed", cuda="simulated")]
ONE_GPU = [worker("a", gpus=1, cpu="executed", cuda="executed")]

ELSEWHERE = {
    "nobody is there": ("matrix_profile", (), {}, {"backend": "cuda"}, "no worker has joined yet"),
    "nobody has a GPU": ("matrix_profile", DASK_ONLY, {}, {"backend": "cuda"}, "cuda is absent"),
    "an import is no proof": ("mpdist", [worker(cuda="importable")], {}, {"backend": "cuda"}, "cuda is importable"),
    "nobody probed": ("matrix_profile", [worker()], {}, {"backend": "dask"}, "no worker has run the dask probe"),
    "dask is not proved": ("matrix_profile", [worker(dask="absent")], {}, {"backend": "dask"}, "dask is absent"),
    "no ray engine": ("matrix_profile", DASK_ONLY, {}, {"backend": "ray"}, "name ray in TIDEMILL_ENGINE"),
    "a probe on another engine": (
        "matrix_profile", [worker(ray="executed")], {}, {"backend": "ray"}, "no worker of the Ray engine has joined",
    ),
    "what it lacks elsewhere": ("matrix_profile", [worker(ray="absent")], {}, {"backend": "ray"}, "(ray is absent)"),
    "no dask engine": ("mpdist", [anything("a", "ray")], {}, {"backend": "dask"}, "name dask in TIDEMILL_ENGINE"),
    "no function": (
        "multidimensional_profile", EVERYWHERE, {}, {"backend": "cuda"}, "STUMPY has no GPU function for a multidimensional profile",
    ),
    **{
        f"an approximation on {backend}": (
            "pan_profile", EVERYWHERE, {"percentage": 0.5}, {"backend": backend}, f"`{function}` is exact only",
        )
        for backend, function in (("dask", "stimped"), ("ray", "stimped"), ("cuda", "gpu_stimp"))
    },
    "a longer series than the simulator takes": (
        "matrix_profile", IN_SIMULATION, {}, {"backend": "cuda"}, "series of up to 64 points, while the longest here has 1050",
    ),
    "a device that is not there": (
        "matrix_profile", ONE_GPU, {}, {"backend": "cuda", "devices": [0, 3]}, "device 3 was asked for, and the largest worker",
    ),
    "more devices than there are": (
        "matrix_profile", ONE_GPU, {}, {"backend": "cuda", "devices": 2}, "has one device, number 0",
    ),
    "a proof without a device": (
        "matrix_profile", [worker(cuda="executed")], {}, {"backend": "cuda"}, "has no device",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "workers", "params", "asked", "reason"), ELSEWHERE.values(), ids=list(ELSEWHERE))
def test_what_cannot_run_there_falls_back_and_says_so_or_is_refused(kind, workers, params, asked, reason):
    made = planned(kind, 1050, workers, params, **asked)
    assert (made.backend, made.device, made.devices, made.workers) == ("cpu", "cpu", None, 1)
    assert made.fallback.wanted == asked["backend"]
    assert reason in made.fallback.reason
    assert made.fallback.reason in made.reasons[0]
    assert not made.acceleration_verified
    assert "Acceleration was not verified." in made.reasons[0]
    with pytest.raises(BackendUnavailable, match=f"'{asked['backend']}' was asked for and cannot be had: ") as caught:
        planned(kind, 1050, workers, params, fallback="forbid", **asked)
    assert caught.value.status == 409
    assert [error.pointer for error in caught.value.errors] == ["/execution/backend"]
    assert made.fallback.reason in caught.value.detail


def test_when_both_are_missing_the_backend_is_told_and_both_have_their_sentence():
    made = planned(backend="cuda", implementation="tiles", params={"k": 2})
    assert made.fallback.wanted == "cuda"
    assert any("k is 2" in reason for reason in made.reasons)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_an_approximation_is_auto_on_cpu_however_large(share):
    made = planned("pan_profile", 3000, EVERYWHERE, {"percentage": share})
    assert made.backend == ("cpu" if share < 1 else "cuda")
    assert made.fallback is None


# ---- the simulator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", ["allow", "forbid"])
@pytest.mark.parametrize("devices", [None, "auto", 1, [0]])
def test_the_simulator_runs_what_asks_for_cuda_by_name_and_is_short(fallback, devices):
    made = planned(
        length=64, workers=IN_SIMULATION, params={"window": 8}, backend="cuda", fallback=fallback, devices=devices
    )
    assert (made.backend, made.device, made.devices, made.function) == ("cuda", "cuda-simulator", None, "gpu_stump")
    assert made.fallback is None
    assert not made.acceleration_verified
    assert made.estimate.seconds is None
    assert any("simulated" in reason for reason in made.reasons)
    [warning] = made.warnings
    assert "Acceleration was not verified." in warning


def test_every_series_must_be_short():
    params = params_of("mpdist", window=8)
    made = plan(OPERATIONS["mpdist"], params, Execution(backend="cuda"), [64, 65], IN_SIMULATION)
    assert (made.backend, made.fallback.wanted) == ("cpu", "cuda")
    assert plan(OPERATIONS["mpdist"], params, Execution(backend="cuda"), [64, 64], IN_SIMULATION).backend == "cuda"


@pytest.mark.parametrize("devices", [2, [1], [0, 1]])
def test_the_simulator_is_one_device(devices):
    made = planned(length=64, workers=IN_SIMULATION, params={"window": 8}, backend="cuda", devices=devices)
    assert made.backend == "cpu"
    assert "the simulator is one device, number 0" in made.fallback.reason


def test_a_real_gpu_beside_a_simulator_is_taken():
    made = planned(length=64, workers=[*IN_SIMULATION, *ONE_GPU], params={"window": 8}, backend="cuda")
    assert (made.device, made.acceleration_verified) == ("cuda:0", True)


# ---- devices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "gpus", "device", "devices"),
    [
        (None, 1, "cuda:0", 1),
        ("auto", 1, "cuda:0", 1),
        (1, 2, "cuda", 1),
        (2, 2, "cuda:0,1", 2),
        (2, 3, "cuda", 2),
        ([0], 2, "cuda:0", [0]),
        ([1, 0], 2, "cuda:1,0", [1, 0]),
    ],
)
def test_devices_are_what_was_asked_for_and_named_where_there_is_no_choice(asked, gpus, device, devices):
    made = planned(workers=[worker(gpus=gpus, cuda="executed")], backend="cuda", devices=asked, fallback="forbid")
    assert (made.device, made.devices) == (device, devices)
    assert made.acceleration_verified


# ---- what `auto` chooses ---------------------------------------------------------------------------------------------

CELLS_5_S = 3211  # windows of 50 in a self-join of so many values are 5 million cells: 5 s at a million a second


def cluster(engine: str, count: int) -> list[WorkerFacts]:
    return [worker(f"{engine}{i}", engine, cpu="executed", **{engine: "executed"}) for i in range(count)]


AUTO = {
    "small work": (1000, cluster("dask", 2), "cpu", "spreading does not pay"),
    "just not enough": (CELLS_5_S, cluster("dask", 2), "cpu", "spreading does not pay"),
    "enough": (CELLS_5_S + 10, cluster("dask", 2), "dask", "several Dask workers share it"),
    "one worker": (9000, cluster("dask", 1), "cpu", "nothing to spread over"),
    "ray alone": (9000, cluster("ray", 2), "ray", "several Ray workers share it"),
    "both": (9000, [*cluster("ray", 2), *cluster("dask", 2)], "dask", "several Dask workers share it"),
    "one of each": (9000, [*cluster("ray", 1), *cluster("dask", 1)], "cpu", "nothing to spread over"),
    "unproved": (9000, [worker("a"), worker("b", dask="executed")], "cpu", "nothing to spread over"),
    "nobody measured": (9000, [worker("a", speed=0, dask="executed"), worker("b", speed=0, dask="executed")], "cpu", "been measured"),
    "nobody there": (9000, [], "cpu", "been measured"),
    "a GPU for large work": (9000, [*cluster("dask", 2), worker("g", gpus=1, cuda="executed")], "cuda", "has run a GPU function"),
    "a GPU for less": (6000, [*cluster("dask", 2), worker("g", gpus=1, cuda="executed")], "dask", "share it"),
    "a simulator": (9000, [*cluster("dask", 2), worker("g", cuda="simulated")], "dask", "share it"),
    "a short series and a simulator": (60, [worker("g", cuda="simulated")], "cpu", "spreading does not pay"),
}  # fmt: skip


@pytest.mark.parametrize(("length", "workers", "backend", "because"), AUTO.values(), ids=list(AUTO))
@pytest.mark.parametrize("fallback", ["allow", "forbid"])
def test_auto(length, workers, backend, because, fallback):
    made = planned(length=length, workers=workers, fallback=fallback, implementation="stumpy")
    assert made.backend == backend
    assert made.fallback is None
    assert made.reasons[0].startswith(f"`auto` chose {backend}: ")
    assert because in made.reasons[0]


def test_every_plan_gives_its_reasons():
    for backend in ("auto", *BACKENDS):
        for implementation in ("auto", "tiles", "stumpy"):
            for workers in ((), EVERYWHERE):
                reasons = planned(backend=backend, implementation=implementation, workers=workers).reasons
                assert len(reasons) >= 3
                assert all(reason.endswith(".") for reason in reasons)


# ---- evidence --------------------------------------------------------------------------------------------------------

proofs = st.sampled_from(EVIDENCE_ORDER)


@settings(deadline=None)
@given(st.lists(proofs), st.sampled_from(BACKENDS))
def test_nothing_is_available_on_less_than_executed(shown, backend):
    engine = backend if backend in ("dask", "ray") else "dask"
    workers = [worker(engine=engine, **{backend: proof}) for proof in shown]
    available, evidence, reason = availability(PROFILE, backend, workers)
    assert available == ("executed" in shown)
    assert evidence == max(shown, key=EVIDENCE_ORDER.index, default="absent")
    assert (reason is None) == available


def test_the_reason_is_the_best_workers_own_word():
    workers = [worker(cuda="absent"), worker(cuda="simulated"), worker(cuda="importable")]
    assert availability(PROFILE, "cuda", workers) == (False, "simulated", "cuda is simulated")


def test_what_the_library_lacks_is_not_available_on_any_proof():
    available, evidence, reason = availability(OPERATIONS["multidimensional_profile"], "cuda", EVERYWHERE)
    assert (available, evidence) == (False, "absent")
    assert "STUMPY has no GPU function" in reason


# ---- every request ---------------------------------------------------------------------------------------------------

evidence = st.dictionaries(st.sampled_from(BACKENDS), proofs.map(lambda proof: (proof, f"it is {proof}")))
speeds = st.dictionaries(st.sampled_from(sorted(anything().speeds)), st.floats(0, 1e10))
workers_up = st.lists(
    st.builds(
        WorkerFacts,
        id=st.just("w"),
        engine=st.sampled_from(["dask", "ray"]),
        threads=st.integers(1, 64),
        speeds=speeds,
        gpus=st.integers(0, 3),
        evidence=evidence,
    ),
    max_size=3,
)
executions = st.one_of(
    st.builds(Execution, backend=st.sampled_from(["auto", "cpu", "dask", "ray"])),
    st.builds(
        Execution,
        backend=st.just("cuda"),
        devices=st.none() | st.just("auto") | st.integers(1, 4) | st.lists(st.integers(0, 4), min_size=1, unique=True),
    ),
).flatmap(
    lambda chosen: st.builds(
        chosen.model_copy,
        update=st.fixed_dictionaries(
            {
                "fallback": st.sampled_from(["allow", "forbid"]),
                "implementation": st.sampled_from(["auto", "tiles", "stumpy"]),
            }
        ).map(lambda update: update),
    )
)
FIELDS = {
    "window": st.integers(-1, 70),
    "p": st.floats(0, 4),
    "normalize": st.booleans(),
    "k": st.integers(-1, 40),
    "include": st.none() | st.lists(st.integers(0, 3)),
    "discords": st.booleans(),
    "percentage": st.floats(-1, 6),
    "min_window": st.integers(-1, 70),
    "max_window": st.none() | st.integers(-1, 70),
    "step": st.integers(-1, 30),
    "pre_scrump": st.booleans(),
}


@st.composite
def requests(draw):
    """Any request, good or bad, with what is known of its series."""
    kind = draw(st.sampled_from(sorted(OPERATIONS)))
    operation = OPERATIONS[kind]
    names = draw(st.sets(st.sampled_from(sorted(set(FIELDS) & set(operation.params.model_fields)))))
    required = {"window"} & set(operation.params.model_fields)
    count = draw(st.integers(1, 3)) if len(operation.series) == 1 and kind != "pan_profile" else len(operation.series)
    params = operation.params.model_validate(
        series_of(kind, count) | {name: draw(FIELDS[name]) for name in sorted(names | required)}
    )
    if kind == "matrix_profile":
        count = draw(st.integers(1, 2))
    length = draw(st.integers(0, 80))
    lengths = [draw(st.sampled_from([length, length, 64, draw(st.integers(0, 80))])) for _ in range(count)]
    return kind, params, [SeriesFacts(f"series {i}", n, [(0, n)] if n else []) for i, n in enumerate(lengths)]


@settings(deadline=None)
@given(requests(), executions, workers_up)
def test_the_plan_of_what_the_checks_accept_is_total(request_, execution, workers):
    kind, params, given_ = request_
    if CHECKS[kind](params, given_).errors:
        return
    lengths = [each.length for each in given_]
    try:
        made = plan(OPERATIONS[kind], params, execution, lengths, workers)
    except BackendUnavailable:
        assert execution.fallback == "forbid"
        return
    if made.implementation == "tiles":
        assert made.function in OPERATIONS[kind].tiles.names
        assert made.backend != "cuda"
        assert execution.implementation != "stumpy"
    else:
        assert made.function == OPERATIONS[kind].functions[made.backend].pick(params.normalize)
    assert made.backend == execution.backend or execution.backend == "auto" or made.fallback
    if made.backend != "cpu":
        wanted = "simulated" if made.device == "cuda-simulator" else "executed"
        assert any(each.evidence.get(made.backend, ("",))[0] == wanted for each in workers)
    assert made.acceleration_verified == (made.backend == "cuda" and made.device != "cuda-simulator")
    assert made.estimate.seconds is None or made.estimate.seconds >= 0
    assert made.estimate.peak_bytes > 0
    assert made.workers >= 1
