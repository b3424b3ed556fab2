"""Several clusters at once: each worker belongs to one, and what becomes of its work is decided by that one."""

import asyncio

import pytest

from app.engines.all import Engines, build_engines, workers_each
from app.engines.base import EngineDown
from app.settings import Settings
from tests.jobs.yard import NoCluster, Yard


class Stopping(NoCluster):
    """One whose stop takes a moment, or fails."""

    def __init__(self, name, fault=None):
        super().__init__("embedded", name)
        self.fault, self.stopped = fault, False

    async def stop(self):
        together.add(self.name)
        await asyncio.sleep(0.01)
        assert together == {"dask", "ray"}
        if self.fault:
            raise self.fault
        self.stopped = True


together: set[str] = set()


def test_engines_are_those_that_the_settings_name_in_that_order(tmp_path):
    assert list(build_engines(Settings(), tmp_path)) == ["dask"]


@pytest.mark.parametrize(
    ("said", "each"),
    [
        ({"engine": "dask"}, 4),
        ({"engine": "dask,ray"}, 2),
        ({"engine": "dask,ray", "ray_address": "auto"}, 4),
        ({"engine": "dask,ray", "workers": 3}, 3),
    ],
)
def test_two_clusters_on_one_machine_share_its_cores_unless_told_otherwise(monkeypatch, said, each):
    monkeypatch.setattr(Settings.model_fields["workers"], "default", 4)
    Settings.model_rebuild(force=True)
    try:
        assert workers_each(Settings(**said)) == each
    finally:
        monkeypatch.undo()
        Settings.model_rebuild(force=True)


def test_all_engines_are_stopped_at_once_and_one_that_fails_keeps_no_other_from_it():
    together.clear()
    failing, other = Stopping("dask", RuntimeError("no")), Stopping("ray")
    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(Engines([failing, other]).stop())
    assert other.stopped


def test_an_engine_that_is_down_hides_no_other():
    down, up = NoCluster("outside"), NoCluster("embedded", "ray")
    down.up = False
    up.present = {"a"}
    present = asyncio.run(Engines([down, up]).present())
    assert isinstance(present["dask"], EngineDown)
    assert present["ray"] == {"a"}


@pytest.fixture
def mixed(tmp_path):
    """An outside Dask cluster beside an embedded Ray cluster."""
    yard = Yard(tmp_path / "home", mode="outside", ray="embedded")
    yield yard
    yard.check()
    yard.close()


def test_a_restart_ends_what_ran_on_embedded_clusters_and_nothing_else(mixed):
    stays, goes = mixed.join(), mixed.join(engine="ray")
    mixed.queue(backend="dask")
    mixed.queue(backend="ray")
    [on_dask, on_ray] = mixed.place()
    for attempt in (on_dask, on_ray):
        mixed.claim(attempt.id, "nonce", attempt.worker_id)
    mixed.start_anew()
    mixed.run(mixed.reconciler.recover())
    assert mixed.job(on_dask.job_id).state == "running"
    assert mixed.job(on_ray.job_id).state == "queued"
    assert mixed.job(on_ray.job_id).attempts_counted == 0
    assert set(mixed.free()) == {stays}
    assert goes not in mixed.free()


def test_workers_of_an_engine_that_is_named_no_longer_are_gone(tmp_path):
    yard = Yard(tmp_path / "home", mode="outside", ray="outside")
    yard.join(engine="ray")
    yard.queue(backend="ray")
    [attempt] = yard.place()
    yard.engines = Engines([yard.engine])
    yard.start_anew()
    yard.run(yard.reconciler.recover())
    assert yard.free() == {}
    assert yard.job(attempt.job_id).state == "queued"
    yard.check()
    yard.close()


def test_a_cluster_that_does_not_answer_costs_its_own_workers_nothing(mixed):
    """And those of the other, which does answer, are buried when they have left it."""
    silent, left = mixed.join(), mixed.join(engine="ray")
    mixed.queue()
    mixed.queue()
    mixed.place()
    mixed.engine.up = False
    mixed.engine.present.clear()
    mixed.vanish(left)
    mixed.sweep()
    assert set(mixed.free()) == {silent}


def test_what_a_cluster_did_not_take_is_handed_over_when_that_one_is_back(mixed):
    mixed.join()
    mixed.join(engine="ray")
    mixed.queue(backend="dask")
    mixed.queue(backend="ray")
    mixed.engine.up = False
    mixed.dispatch()
    mixed.minutes_pass()
    mixed.sweep()
    assert (len(mixed.engine.submitted), len(set(mixed.engines["ray"].submitted))) == (0, 1)
    mixed.engine.up = True
    mixed.sweep()
    assert len(mixed.engine.submitted) == 1


def test_each_engine_forgets_its_own(mixed):
    mixed.join()
    mixed.join(engine="ray")
    jobs = [mixed.queue(backend="dask"), mixed.queue(backend="ray")]
    mixed.dispatch()
    for job in jobs:
        mixed.cancel(job)
    mixed.sweep()
    for engine in mixed.engines.values():
        assert engine.forgotten == engine.submitted
