"""How long and how much: from measured speeds, for every kind; how wrong it was; and what is refused for its memory."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.jobs import memory
from app.jobs.checks.facts import SeriesFacts
from app.jobs.estimates import estimate_error
from app.jobs.planning import WorkerFacts
from tests.jobs.planned import SPEEDS, lengths_of, params_of, planned, worker
from workers.operations import OPERATIONS
from workers.sizes import pan_windows

GB = 10**9

# ---- seconds ---------------------------------------------------------------------------------------------------------


def pairs(rows):
    return rows * (rows - 1) / 2


@pytest.mark.parametrize(
    ("kind", "params", "cells"),
    [
        ("matrix_profile", {}, pairs(1001)),
        ("multidimensional_profile", {}, 2 * 1001**2),
        ("mpdist", {}, 2 * 1001**2),
        ("consensus_motif", {}, 2 * 1001**2),
        ("pan_profile", {"min_window": 50, "max_window": 60, "step": 10}, pairs(1001) + pairs(991)),
        ("pan_profile", {"min_window": 50, "max_window": 50, "percentage": 0.5}, pairs(1001) / 2),
    ],
)
@pytest.mark.parametrize("normalize", [True, False])
def test_seconds_are_cells_over_the_measured_speed_of_the_kernel(kind, params, cells, normalize):
    kernel = f"{OPERATIONS[kind].kernels.pick(normalize)}_cells_per_second"
    measured = WorkerFacts("w", speeds={**dict.fromkeys(SPEEDS, 1.0), kernel: 4e5})
    asked = {"backend": "cpu", "implementation": "stumpy"}
    made = planned(kind, 1050, [measured], {**params, "normalize": normalize}, **asked)
    assert made.estimate.seconds == pytest.approx(cells / 4e5)


@pytest.mark.parametrize(
    ("kind", "params", "cells"),
    [
        ("matrix_profile", {}, pairs(1001)),
        ("mpdist", {}, 1001**2),  # both joins in one pass
        ("consensus_motif", {}, 2 * 1001**2),
        ("pan_profile", {"min_window": 50, "max_window": 60, "step": 10}, pairs(1001) + pairs(991)),
    ],
)
@pytest.mark.parametrize("normalize", [True, False])
def test_seconds_of_tiles_are_from_the_measured_speed_of_tiles(kind, params, cells, normalize):
    kernel = "tiles_cells_per_second" if normalize else "p_norm_tiles_cells_per_second"
    measured = WorkerFacts("w", speeds={**dict.fromkeys(SPEEDS, 1.0), kernel: 4e5})
    made = planned(kind, 1050, [measured], {**params, "normalize": normalize}, backend="cpu")
    assert made.estimate.seconds == pytest.approx(cells / 4e5)


@settings(deadline=None)
@given(st.integers(10, 300), st.integers(3, 8), st.none() | st.integers(8, 200), st.integers(1, 40))
def test_the_cells_of_a_pan_profile_are_those_of_its_windows(length, least, most, step):
    params = params_of("pan_profile", min_window=least, max_window=most and min(most, length), step=step)
    cells = sum(pairs(length - m + 1) for m in pan_windows(params, length))
    assert OPERATIONS["pan_profile"].cells(params, [length]) == cells


def test_one_worker_is_the_slowest_it_may_land_on_and_a_cluster_is_all_of_it():
    workers = [worker(speed=speed, dask="executed") for speed in (2e6, 5e5, 0.0)]
    assert planned(workers=workers, backend="cpu").estimate.seconds == pytest.approx(pairs(1001) / 5e5)
    spread = planned(workers=[*workers, worker(engine="ray", speed=1e9)], backend="dask")
    assert spread.estimate.seconds == pytest.approx(pairs(1001) / 2.5e6)


def test_a_gpu_is_not_estimated_from_a_cpu():
    gpu = WorkerFacts("g", speeds=SPEEDS, gpus=1, evidence={"cuda": ("executed", "")})
    assert planned(workers=[gpu], backend="cuda").estimate.seconds is None
    measured = WorkerFacts("g", "dask", 2, {"gpu_matrix_profile_cells_per_second": 1e9}, 0, 1, gpu.evidence)
    assert planned(workers=[measured], backend="cuda").estimate.seconds == pytest.approx(pairs(1001) / 1e9)


def test_without_a_measured_speed_there_is_no_estimate():
    assert planned().estimate.seconds is None
    assert planned(workers=[worker(speed=0.0)]).estimate.seconds is None
    assert planned().estimate.peak_bytes > 0


@settings(deadline=None)
@given(st.sampled_from(sorted(OPERATIONS)), st.integers(60, 10**5), st.integers(1, 64))
def test_more_work_never_needs_less(kind, length, threads):
    small = planned(kind, length, [worker(threads=threads)], backend="cpu").estimate
    large = planned(kind, 2 * length, [worker(threads=threads + 1)], backend="cpu").estimate
    assert large.seconds >= small.seconds
    assert large.peak_bytes >= small.peak_bytes


# ---- how wrong it was ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimated", "provenance", "error"),
    [
        (2.0, {"seconds": {"loading": 9.0, "computing": 3.0}}, {"estimated_seconds": 2.0, "actual_seconds": 3.0, "ratio": 1.5}),
        (4.0, {"seconds": {"computing": 1.0}}, {"estimated_seconds": 4.0, "actual_seconds": 1.0, "ratio": 0.25}),
        (None, {"seconds": {"computing": 1.0}}, None),
        (0.0, {"seconds": {"computing": 1.0}}, None),
        (1.0, {"seconds": {"loading": 1.0}}, None),
        (1.0, {"seconds": 3.0}, None),
        (1.0, {}, None),
        (1.0, None, None),
    ],
)  # fmt: skip
def test_the_error_of_an_estimate_is_about_computing(estimated, provenance, error):
    assert estimate_error({"estimate": {"seconds": estimated}}, provenance) == error


def test_a_plan_without_an_estimate_has_no_error():
    assert estimate_error({}, {"seconds": {"computing": 1.0}}) is None


# ---- memory ----------------------------------------------------------------------------------------------------------


def facts(lengths):
    several = len(lengths) > 1
    return [
        SeriesFacts(f"series {i}", n, [(0, n)], pointer=f"/params/series/{i}" if several else "/params/series")
        for i, n in enumerate(lengths)
    ]


def refused(kind, lengths, limit, threads=2, **params):
    limits = memory.Limit(limit, "the largest worker has little")
    return memory.refusal(
        OPERATIONS[kind], params_of(kind, **params), facts(lengths), [worker(threads=threads)], limits
    )


def need(kind, lengths, threads=2, **params):
    return OPERATIONS[kind].peak_bytes(params_of(kind, **params), lengths, threads)


def offered(fault, before):
    """The number in a refusal's advice that follows these words."""
    return int(fault.detail.split(before)[1].split()[0].rstrip("."))


def test_the_default_pan_profile_of_a_hundred_thousand_points_is_refused_with_what_fits():
    fault = refused("pan_profile", [100_000], 8 * GB)
    assert fault.pointer == "/params/step"
    assert "128" in fault.detail
    step, longest, length = (
        offered(fault, before) for before in ("step of at least ", "max_window of at most ", "series of at most ")
    )
    assert refused("pan_profile", [100_000], 8 * GB, step=step) is None
    assert refused("pan_profile", [100_000], 8 * GB, step=step - 1) is not None
    assert refused("pan_profile", [100_000], 8 * GB, max_window=longest) is None
    assert refused("pan_profile", [100_000], 8 * GB, max_window=longest + 1) is not None
    assert refused("pan_profile", [length], 8 * GB) is None
    assert refused("pan_profile", [length + 1], 8 * GB) is not None


@pytest.mark.parametrize("kind", [kind for kind in OPERATIONS if kind != "pan_profile"])
def test_the_longest_series_that_fits_is_named_and_fits(kind):
    lengths = lengths_of(kind, 3_000_000)
    fault = refused(kind, lengths, GB)
    cap = offered(fault, "series of at most ")
    assert fault.pointer == ("/params/series" if kind == "matrix_profile" else "/params/series/0")
    assert refused(kind, lengths_of(kind, cap), GB) is None
    assert refused(kind, lengths_of(kind, cap + 1), GB) is not None


def test_fewer_neighbours_or_fewer_series_may_fit():
    fault = refused("matrix_profile", [1_000_000], GB, k=50)
    assert fault.pointer == "/params/k"
    assert refused("matrix_profile", [1_000_000], GB, k=offered(fault, "k of at most ")) is None
    many = refused("multidimensional_profile", [100_000] * 60, GB)
    assert refused("multidimensional_profile", [100_000] * offered(many, "the first "), GB) is None


@settings(deadline=None)
@given(st.sampled_from(sorted(OPERATIONS)), st.integers(60, 10**6), st.integers(1, 16 * GB))
def test_it_is_refused_exactly_where_it_needs_more(kind, length, limit):
    lengths = lengths_of(kind, length)
    fault = refused(kind, lengths, limit)
    assert (fault is None) == (need(kind, lengths) <= limit)
    assert fault is None or fault.detail.endswith(".")


def test_where_nothing_fits_it_says_so():
    fault = refused("matrix_profile", [1000], 1000)
    assert (fault.pointer, "No single change" in fault.detail) == ("/params/series", True)


def test_the_limit_is_the_setting_or_the_largest_worker():
    workers = [worker(memory=2 * GB), worker(memory=8 * GB), worker()]
    assert memory.limit_of(GB, workers).bytes == GB
    assert memory.limit_of(None, workers).bytes == 8 * GB
    assert memory.limit_of(None, [worker()]) is memory.limit_of(None, []) is None
    params = params_of("pan_profile")
    assert memory.refusal(OPERATIONS["pan_profile"], params, facts([100_000]), [], None) is None


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_bisection_finds_the_border(low, high, border):
    found = [n for n in range(low, high + 1) if n <= border]
    assert memory.most(lambda n: n <= border, low, high) == (max(found) if found else None)
    found = [n for n in range(low, high + 1) if n >= border]
    assert memory.least(lambda n: n >= border, low, high) == (min(found) if found else None)
