"""A job that no worker could ever run says so, with what it asks for and the most that is there; and may be refused for it at once."""

import pytest

from app.control.never import NEVER
from app.jobs.explain import explanation
from app.jobs.problems import BackendUnavailable
from app.jobs.requests import REQUESTS
from app.kit.problems import InvalidInput
from tests.jobs.yard import OWNER, Yard

CUDA = {"backend": "cuda", "device": "cuda"}
SERIES = {"values": [float((i * i) % 23) for i in range(100)]}


def explained(yard: Yard, job: str):
    return yard.read(lambda db: explanation(db, yard.job(job), set(yard.engines) - yard.engines.up()))


def resolved(nodes: int = 1, devices: int | list[int] = 0) -> dict:
    """What a training job comes to; with devices, on CUDA."""
    indices = devices if isinstance(devices, list) else None
    count = len(devices) if isinstance(devices, list) else devices or 1
    return {
        "accelerator": "cuda" if devices else "cpu", "num_nodes": nodes, "devices": count, "device_indices": indices,
        "strategy": "ddp", "precision": "32-true", "world_size": nodes * count,
    }  # fmt: skip


def gpu_worker(yard: Yard, *gpus: str, **about) -> str:
    return yard.join(gpus=gpus, **{"training/accelerator/cuda": "executed"}, **about)


NEVER_WITH_ONE_GPU_EACH = {
    "three GPUs": (
        "mpdist", {**CUDA, "devices": 3},
        "3 devices, numbers 0 to 2 asked for, and the largest worker that proved CUDA has one device, number 0 (a job's are all of "
        "one worker, and 2 are there in all); start a worker with --gpus 3 on a machine that has as many",
    ),
    "two of two workers": (
        "mpdist", {**CUDA, "devices": 2}, "(a job's are all of one worker, and 2 are there in all); start a worker with --gpus 2",
    ),
    "indices": ("mpdist", {**CUDA, "devices": [0, 2]}, "device 2 was asked for, and the largest worker that proved CUDA has one device"),
    "training on three GPUs": ("training", {"backend": "cuda", "resolved": resolved(1, 3)}, "3 devices, numbers 0 to 2 asked for"),
    "training by index": ("training", {"backend": "cuda", "resolved": resolved(1, [1])}, "device 1 was asked for"),
    "a gang of five": (
        "training", {"backend": "dask", "resolved": resolved(5)},
        "it needs 5 workers of one cluster at once, and the dask cluster has 2 that could take part; let 3 more join",
    ),
    "a gang with GPUs": (
        "training", {"backend": "dask", "resolved": resolved(3, 1)}, "the dask cluster has 2 that could take part; let 1 more join",
    ),
    "a gang of another cluster": (
        "training", {"backend": "ray", "resolved": resolved(2)}, "it runs on the ray cluster, and no worker of that is there",
    ),
    "another cluster": ("mpdist", {"backend": "ray"}, "it runs on the ray cluster, and no worker of that is there"),
    "the simulator": ("mpdist", {"backend": "cuda", "device": "cuda-simulator"}, "needs Numba's CUDA simulator, and no worker runs that"),
    "memory": (
        "mpdist", {"estimate": {"seconds": 1, "peak_bytes": 70 << 30}}, "it needs 64 GiB of memory or more, and the largest worker has 8.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "plan", "said"), NEVER_WITH_ONE_GPU_EACH.values(), ids=list(NEVER_WITH_ONE_GPU_EACH))
def test_what_no_worker_could_run_is_told_from_what_waits_for_room(yard, kind, plan, said):
    for gpu in "ab":
        gpu_worker(yard, gpu, memory_bytes=8 << 30)
    told = explained(yard, yard.queue(kind, **plan))
    assert said in told.never
    assert told.summary.startswith(f"It waits, and {NEVER}: {told.never}.")
    assert yard.place() == []


def test_one_that_only_waits_for_room_says_that(yard):
    gpu_worker(yard, "a")
    running = yard.queue(**CUDA)
    yard.place()
    next_one, gang = yard.queue(**CUDA), yard.queue("training", backend="dask", resolved=resolved(1))
    for job, said in (
        (next_one, "it waits for room, because every worker is taken"),
        (gang, "It waits behind 1 job(s)"),
    ):
        told = explained(yard, job)
        assert told.never is None
        assert said in told.summary
    assert explained(yard, running).never is None


def test_it_changes_when_such_a_worker_joins_and_again_when_it_leaves(yard):
    small = gpu_worker(yard, "a")
    job = yard.queue(devices=3, **CUDA)
    assert explained(yard, job).never
    large = gpu_worker(yard, "b", "c", "d")
    told = explained(yard, job)
    assert (told.never, told.summary) == (None, "It is the next one, and a worker has room: it starts now.")
    yard.vanish(large)
    yard.sweep()
    assert explained(yard, job).never
    assert {each.id for each in explained(yard, job).workers} == {small}


def test_a_gpu_that_proved_nothing_runs_nothing_and_says_why(yard):
    yard.join(gpus=["a"], cuda="importable")
    told = explained(yard, yard.queue(**CUDA))
    assert told.never == "every worker has a GPU, but its cuda probe proved no more than 'importable'"


def test_nobody_there_is_not_never(yard):
    told = explained(yard, yard.queue(**CUDA))
    assert told.never is None
    assert "no worker is there" in told.summary


def test_a_cluster_that_is_away_is_told_of(yard):
    yard.join()
    job = yard.queue(backend="dask")
    yard.engine.address = None
    told = explained(yard, job)
    assert (told.never, told.summary) == (
        None,
        "It waits because the dask cluster cannot be reached now; it is tried again and again.",
    )
    yard.join(engine="ray")
    assert "it starts now" in explained(yard, yard.queue(priority=1)).summary


# ---- at submission ---------------------------------------------------------------------------------------------------


def profile(**execution) -> dict:
    return {"kind": "matrix_profile", "params": {"series": SERIES, "window": 10}, "execution": execution}


def training(execution: dict, **trainer) -> dict:
    model = {"class_path": "workers.training.models.Forecaster", "init_args": {"horizon": 2}}
    data = {"class_path": "workers.training.data.SeriesWindows", "init_args": {"series": SERIES, "context": 8}}
    config = {"trainer": {"max_epochs": 1, **trainer}, "model": model, "data": data}
    return {"kind": "training", "params": {"config": config}, "execution": execution}


def planned(yard: Yard, body: dict):
    request = REQUESTS.validate_python(body)
    return yard.read(lambda db: yard.jobs.admission.planned(db, request, OWNER)).plan


@pytest.mark.parametrize("devices", [3, [0, 2]])
def test_cuda_devices_that_nobody_has_are_refused_in_the_words_of_explain(yard, devices):
    large = gpu_worker(yard, "a", "b", "c")
    gpu_worker(yard, "d")
    asked = {"backend": "cuda", "devices": devices}
    # It was accepted while such a worker was there, and waits for it now.
    yard.cancel(first := yard.submit(execution=asked))
    assert yard.job(first).plan["backend"] == "cuda"
    waits = yard.submit(execution=asked)
    yard.vanish(large)
    yard.sweep()
    words = explained(yard, waits).never
    with pytest.raises(BackendUnavailable) as refused:
        planned(yard, profile(fallback="forbid", **asked))
    assert words in refused.value.detail
    assert (refused.value.status, [each.pointer for each in refused.value.errors]) == (409, ["/execution/backend"])
    instead = planned(yard, profile(**asked))
    assert (instead.backend, instead.fallback.wanted, instead.fallback.reason) == ("cpu", "cuda", words)


@pytest.mark.parametrize(
    ("trainer", "pointers", "said", "reason"),
    [
        (
            {"accelerator": "cuda", "devices": 3},
            ["devices"],
            "3 devices on one node: the largest worker has 1 CUDA device(s)",
            "3 devices, numbers 0 to 2 asked for, and the largest worker that proved CUDA has one device",
        ),
        (
            {"accelerator": "cuda", "devices": [0, 2]},
            ["devices"],
            "device 2 on one node: the largest worker has 1 CUDA device(s)",
            "device 2 was asked for, and the largest worker that proved CUDA has one device",
        ),
        (
            {"accelerator": "cpu", "num_nodes": 5},
            ["num_nodes"],
            "5 nodes are as many workers of one engine: dask has 2",
            "the dask cluster has 2 that could take part; let 3 more join",
        ),
        (
            {"accelerator": "cuda", "devices": 2, "num_nodes": 3},
            ["devices", "num_nodes"],
            "2 devices on one node: the largest worker has 1 CUDA device(s)",
            "2 devices, numbers 0 to 1 asked for, and the largest worker that proved CUDA has one device",
        ),
    ],
    ids=["devices", "indices", "nodes", "both"],
)
def test_training_on_more_than_there_is_waits_and_says_so_or_is_refused(yard, trainer, pointers, said, reason):
    gpu_worker(yard, "a")
    yard.join()
    asked = {"strategy": "ddp", **trainer}
    with pytest.raises(BackendUnavailable) as refused:
        planned(yard, training({"fallback": "forbid"}, **asked))
    assert refused.value.detail.startswith(NEVER.capitalize())
    assert said in refused.value.detail
    assert [each.pointer for each in refused.value.errors] == [f"/params/config/trainer/{each}" for each in pointers]
    waits = planned(yard, training({}, **asked))
    indices = asked.get("devices") if isinstance(asked.get("devices"), list) else None
    there = (waits.resolved.num_nodes, waits.resolved.device_indices)
    assert there == (asked.get("num_nodes", 1), indices)
    assert waits.warnings[-1].startswith(f"It will wait, for {NEVER}: ")
    assert reason in waits.warnings[-1]
    job = yard.queue("training", **waits.model_dump(mode="json"))
    assert reason in explained(yard, job).never


def test_all_devices_of_a_worker_are_those_that_are_there_even_where_workers_are_missing(yard):
    gpu_worker(yard, "a")
    waits = planned(yard, training({}, accelerator="cuda", devices="auto", num_nodes=3, strategy="ddp"))
    assert (waits.resolved.devices, waits.resolved.num_nodes) == (1, 3)


def test_what_is_wrong_anywhere_is_no_matter_of_the_workers(yard):
    yard.join()
    wrong = {"accelerator": "cpu", "num_nodes": 5, "devices": 0}
    with pytest.raises(InvalidInput):
        planned(yard, training({"fallback": "forbid"}, **wrong))
    with pytest.raises(InvalidInput) as refused:
        planned(yard, training({}, **wrong))
    assert [each.pointer for each in refused.value.errors] == [
        "/params/config/trainer/devices"
    ]  # nodes may be waited for


def test_a_gang_that_finds_too_few_gpus_is_refused_or_waits_and_says_so(yard):
    """Two nodes with a GPU each: two workers are there, but only one of them has a GPU."""
    gpu_worker(yard, "a")
    yard.join()
    asked = {"accelerator": "cuda", "devices": 1, "num_nodes": 2, "strategy": "ddp"}
    words = (
        "it needs 2 workers of one cluster at once, and the dask cluster has 1 that could take part; let 1 more join"
    )
    with pytest.raises(BackendUnavailable, match=words):
        planned(yard, training({"fallback": "forbid"}, **asked))
    waits = planned(yard, training({}, **asked))
    assert waits.warnings[-1] == f"It will wait, for {NEVER}: {words}."
    job = yard.queue("training", **waits.model_dump(mode="json"))
    assert explained(yard, job).never == words
    gpu_worker(yard, "b")
    assert explained(yard, job).never is None
    assert planned(yard, training({"fallback": "forbid"}, **asked)).warnings == []


def test_every_job_that_a_worker_there_could_run_is_accepted_under_forbid(yard):
    gpu_worker(yard, "a", "b")
    yard.join()
    for execution in ({"backend": "cuda", "devices": 2}, {"backend": "cpu"}, {}):
        assert planned(yard, profile(fallback="forbid", **execution)).warnings == []


def test_a_job_goes_to_a_worker_that_has_the_memory_for_it(yard):
    yard.join(threads=8, memory_bytes=4 << 30)
    large = yard.join(threads=1, memory_bytes=64 << 30)
    yard.queue(estimate={"seconds": 1, "peak_bytes": 20 << 30})
    assert [attempt.worker_id for attempt in yard.place()] == [large]
    assert yard.job(yard.queue(estimate={"seconds": 1, "peak_bytes": 20 << 30})).demand == "cpu ~16"
